from dataclasses import replace

import numpy as np
import pytest
import torch

from model.config import NetworkConfig
from model.data.dataset import Targets
from model.data.spaces import MultipleChoice, SingleChoice
from model.qumab.batches import TokenStore, VoteTable
from model.qumab.network import QueryNetwork
from model.qumab.slots import lay_out
from model.qumab.training import evaluate, masked_loss, train, units_at_once, vote_weights

SPACES = {"single": SingleChoice(("a", "b", "c")), "multiple": MultipleChoice(("p", "q"))}
SLOTS = lay_out(SPACES)
UNITS, PEOPLE, D = 12, 3, 8
CONFIG = NetworkConfig(width=16, epochs=4, batch_units=4)


def _targets(name, rows, seed=0):
    """Votes of (unit, annotator) pairs with random values."""
    rng = np.random.default_rng(seed)
    unit, annotator = np.array(rows).reshape(-1, 2).T
    space = SPACES[name]
    if name == "single":
        y = np.eye(3, dtype=np.float32)[rng.integers(0, 3, len(rows))]
    else:
        y = (rng.random((len(rows), 2)) < 0.5).astype(np.float32)
    return Targets(
        space=space, unit=unit, annotator=annotator, y=y, weight=np.ones(len(rows), np.float32),
        scored=np.ones(len(rows), bool),
    )


def _store(resident_mb=10):
    rng = np.random.default_rng(1)
    tokens = {str(u): rng.normal(size=(2 + u % 4, D)).astype(np.float16) for u in range(UNITS)}
    units = [str(u) for u in range(UNITS)]
    return TokenStore(
        units, lambda names: [tokens[n] for n in names], trained=np.ones(UNITS, bool), resident_mb=resident_mb,
        device=torch.device("cpu"),
    )


def _network(members=1):
    return QueryNetwork(members, PEOPLE, 5, D, CONFIG, torch.Generator().manual_seed(0))


ALL = [(u, a) for u in range(UNITS) for a in range(PEOPLE)]


def test_loss_is_that_of_the_given_votes_alone():
    logits = torch.randn(1, 4, PEOPLE + 1, 5, generator=torch.Generator().manual_seed(3))
    single, multiple = _targets("single", [(0, 1), (2, 0)]), _targets("multiple", [(2, 2)])
    weights = {"single": np.ones((1, 2)), "multiple": np.ones((1, 1))}
    table = VoteTable({"single": single, "multiple": multiple}, weights)
    found = masked_loss(logits, SLOTS, table, np.arange(4), 0.0)
    expected = sum(
        torch.nn.functional.cross_entropy(logits[0, u, a, :3][None], torch.tensor(y)[None])
        for u, a, y in zip(single.unit, single.annotator, single.y, strict=True)
    ) + torch.nn.functional.binary_cross_entropy_with_logits(
        logits[0, 2, 2, 3:], torch.tensor(multiple.y[0]), reduction="sum"
    )
    torch.testing.assert_close(found[0], expected)


def test_missing_votes_get_no_gradient():
    logits = torch.zeros(1, 4, PEOPLE + 1, 5, requires_grad=True)
    table = VoteTable({"single": _targets("single", [(0, 1), (2, 0)])}, {"single": np.ones((1, 2))})
    masked_loss(logits, SLOTS, table, np.arange(4), 0.0).sum().backward()
    touched = {tuple(index) for index in logits.grad[0].abs().sum(-1).nonzero().tolist()}
    assert touched == {(0, 1), (2, 0)}
    assert logits.grad[..., 3:].abs().sum() == 0  # nobody voted with the other control


def test_the_generic_query_learns_from_everybody():
    logits = torch.zeros(1, 4, PEOPLE + 1, 5, requires_grad=True)
    table = VoteTable({"single": _targets("single", [(0, 1), (2, 0)])}, {"single": np.ones((1, 2))})
    masked_loss(logits, SLOTS, table, np.arange(4), 0.25).sum().backward()
    grad = logits.grad[0].abs().sum(-1)
    assert grad[0, -1] > 0 and grad[2, -1] > 0 and grad[1, -1] == 0
    torch.testing.assert_close(grad[0, -1] / grad[0, 1], torch.tensor(1.0 / 3.0))


def test_weights_are_n_to_the_tau():
    targets = _targets("single", [(u, 0) for u in range(9)] + [(0, 1)])
    for tau in (0.0, 0.5, 1.0):
        weight = vote_weights(targets, tau)
        assert weight.mean() == pytest.approx(1.0)
        assert weight[:9].sum() / weight[9] == pytest.approx(9**tau)


def _tables(members):
    """Member m validates on units with u % 3 == m; each annotator has a favourite, so that there is much to learn."""
    targets = _targets("single", ALL)
    targets = replace(targets, y=np.eye(3, dtype=np.float32)[targets.annotator])
    own = targets.unit[None] % 3 == np.arange(members)[:, None]
    return VoteTable({"single": targets}, {"single": ~own * 1.0}), VoteTable({"single": targets}, {"single": own * 1.0})


def test_training_lowers_the_training_loss_and_keeps_the_best_epoch():
    network, store = _network(2), _store()
    learn, check = _tables(2)
    before = evaluate(network, SLOTS, store, learn)
    config = replace(CONFIG, epochs=12, patience=12, dropout=0.0, token_dropout=0.0)
    history = train(network, SLOTS, store, learn, check, config, seed=0, epochs=12, progress=lambda share: None)
    assert (evaluate(network, SLOTS, store, learn) < before).all()
    kept = evaluate(network, SLOTS, store, check)
    np.testing.assert_allclose(kept, np.min(history.validation, axis=0), rtol=1e-5)
    chosen = [history.validation[epoch][member] for member, epoch in enumerate(history.best_epoch)]
    assert chosen == pytest.approx(kept.tolist(), rel=1e-5)


def test_a_member_never_learns_from_its_own_fold():
    """Other values on the fold of member 0 change what member 1 learns, and nothing else in member 0."""
    states = []
    for flip in (False, True):
        network, store = _network(2), _store()
        targets = _targets("single", ALL)
        if flip:
            mine = targets.unit % 3 == 0
            targets = replace(targets, y=np.where(mine[:, None], np.roll(targets.y, 1, axis=1), targets.y))
        own = targets.unit[None] % 3 == np.arange(2)[:, None]
        learn = VoteTable({"single": targets}, {"single": ~own * 1.0})
        # One vote of another unit says which epoch is best, so that the choice of the epoch is the same both times.
        fixed = (targets.unit == 1)[None] * np.ones((2, 1))
        check = VoteTable({"single": _targets("single", ALL)}, {"single": fixed})
        train(network, SLOTS, store, learn, check, CONFIG, seed=0, epochs=2, progress=lambda share: None)
        states.append([parameter.detach().clone() for parameter in network.parameters()])
    for first, second in zip(*states, strict=True):
        torch.testing.assert_close(first[0], second[0])
    assert any(not torch.equal(first[1], second[1]) for first, second in zip(*states, strict=True))


def test_without_votes_to_validate_on_nothing_changes():
    network, store = _network(), _store()
    before = [parameter.clone() for parameter in network.parameters()]
    learn, _ = _tables(1)
    empty = VoteTable({"single": _targets("single", ALL)}, {"single": np.zeros((1, len(ALL)))})
    history = train(network, SLOTS, store, learn, empty, CONFIG, seed=0, epochs=3, progress=lambda share: None)
    assert history.epochs == 0
    assert all(torch.equal(a, b) for a, b in zip(before, network.parameters(), strict=True))


def test_a_member_without_votes_to_validate_on_trains_as_long_as_the_others():
    network, store = _network(2), _store()
    learn, _ = _tables(2)
    targets = _targets("single", ALL)
    targets = replace(targets, y=np.eye(3, dtype=np.float32)[targets.annotator])
    first_alone = np.stack([targets.unit % 3 == 0, np.zeros(len(ALL))])
    check = VoteTable({"single": targets}, {"single": first_alone})
    before = evaluate(network, SLOTS, store, learn)
    history = train(network, SLOTS, store, learn, check, CONFIG, seed=0, epochs=4, progress=lambda share: None)
    assert history.best_epoch[1] == history.best_epoch[0] > 0
    assert evaluate(network, SLOTS, store, learn)[1] < before[1]


def test_each_member_is_evaluated_on_its_own_units_only_and_alike():
    network, store = _network(2), _store()
    targets = _targets("single", ALL)
    own = np.stack([targets.unit % 3 == 0, targets.unit % 3 == 1]).astype(float)
    check = VoteTable({"single": targets}, {"single": own})
    assert [(who.tolist(), set(units % 3)) for who, units in check.groups()] == [([0], {0}), ([1], {1})]
    both = VoteTable({"single": targets}, {"single": np.ones_like(own)})
    assert [who.tolist() for who, _ in both.groups()] == [[0, 1]]
    found = evaluate(network, SLOTS, store, check)
    for member in range(2):
        alone = np.zeros_like(own)
        alone[:, :] = own[member]
        expected = evaluate(network, SLOTS, store, VoteTable({"single": targets}, {"single": alone}))[member]
        np.testing.assert_allclose(found[member], expected, rtol=1e-5)


def test_a_network_is_some_of_its_members_for_a_while():
    network, store = _network(3), _store()
    tokens = store.batch(np.array([0, 1]))
    before = [parameter.data_ptr() for parameter in network.parameters()]
    with torch.no_grad():
        whole = network(*tokens)
        with network.only(np.array([2, 0])):
            assert network.members == 2
            torch.testing.assert_close(network(*tokens), whole[[2, 0]])
    assert network.members == 3 and before == [parameter.data_ptr() for parameter in network.parameters()]


@pytest.fixture
def gone_through(monkeypatch):
    """The positions of the units of each batch of a training that gets better with each epoch."""
    learn, check = _tables(2)

    def trained(latest, **config):
        store, seen = _store(), []
        batch = store.batch
        monkeypatch.setattr(store, "batch", lambda positions: seen.append(positions) or batch(positions))
        monkeypatch.setattr("model.qumab.training.evaluate", lambda *_: np.full(2, -float(len(seen))))
        train(_network(2), SLOTS, store, learn, check, replace(CONFIG, replay=1.0, **config), seed=0, epochs=2,
              progress=lambda share: None, latest=latest)
        return seen

    return trained


def test_new_units_are_gone_through_with_some_others(gone_through):
    latest = _tables(2)[0].units[:3]
    seen = gone_through(latest, batch_units=4)
    assert sum(map(len, seen)) == 12  # twice these three and as many others
    assert [np.isin(np.concatenate(seen), unit).sum() for unit in latest] == [2, 2, 2]


def test_one_new_unit_does_not_make_a_gradient_of_its_own(gone_through):
    units = _tables(2)[0].units
    for size, expected in ((8, 8), (1000, len(units))):
        seen = gone_through(units[:1], batch_units=size)
        assert [len(positions) for positions in seen] == [expected] * 2
        assert all(units[0] in positions for positions in seen)
    assert gone_through(units[:0], batch_units=8) == []


def test_the_loss_of_a_few_units_stands_for_all_votes_beside_the_prior(monkeypatch):
    """With every vote alike, a step over some units has the gradient of one over all."""
    learn, check = _tables(2)
    losses = []
    monkeypatch.setattr("model.qumab.training._training_loss", lambda network, slots, store, positions, *_: torch.full(
        (2,), float(len(positions)), requires_grad=True) * torch.tensor(learn.totals / len(learn.units)))
    monkeypatch.setattr("model.qumab.training.FlatAdamW.step", lambda self, loss: losses.append(float(loss.detach())))
    for latest in (None, learn.units[:1], learn.units[:3]):
        losses.clear()
        config = replace(CONFIG, replay=1.0, batch_units=4, shrinkage=0.0)
        train(_network(2), SLOTS, _store(), learn, check, config, seed=0, epochs=1, progress=lambda share: None,
              latest=latest)
        assert np.mean(losses) == pytest.approx(2.0)  # of two members


def test_many_annotators_get_smaller_batches(monkeypatch):
    store, units = _store(), np.arange(UNITS)
    few, many = (QueryNetwork(2, people, 5, D, CONFIG, torch.Generator()) for people in (3, 300))
    assert units_at_once(few, store, units, 32, 1_000_000) == 32
    assert units_at_once(many, store, units, 32, 1_000_000) < 10
    assert units_at_once(many, store, units, 32, 1) == 1
    learn, check = _tables(2)
    seen = []
    network, batch = _network(2), store.batch
    whole = evaluate(network, SLOTS, store, check)
    monkeypatch.setattr("model.qumab.training._TRAINING_CELLS", 1)
    monkeypatch.setattr("model.qumab.training._EVALUATION_CELLS", 1)
    monkeypatch.setattr(store, "batch", lambda positions: seen.append(len(positions)) or batch(positions))
    np.testing.assert_allclose(evaluate(network, SLOTS, store, check), whole, rtol=1e-5)
    train(network, SLOTS, store, learn, check, CONFIG, seed=0, epochs=1, progress=lambda share: None)
    assert set(seen) == {1}


def test_tokens_that_do_not_fit_in_memory_are_fetched_and_equal():
    resident, fetched = _store(), _store(resident_mb=0)
    positions = np.array([3, 0, 7])
    (tokens, mask), (other, other_mask) = resident.batch(positions), fetched.batch(positions)
    assert torch.equal(mask, other_mask)
    assert torch.equal(tokens[mask], other[mask])
