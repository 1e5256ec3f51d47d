from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from transformers import Blip2QFormerConfig, Blip2QFormerModel

from model.config import NetworkConfig
from model.data.spaces import SingleChoice
from model.ensemble.ladder import fit
from model.errors import ModelError
from model.qumab.builds import build_network
from model.qumab.committee import Committee
from model.qumab.folded import Reading
from model.qumab.qformer import QFormerNetwork
from model.qumab.qformer_layers import QFormer, QFormerShape
from model.qumab.qformer_video import VideoQFormerNetwork
from model.qumab.qformer_weights import from_original, load_folder, to_original
from model.simulate import simulate_annotators

SHAPE = QFormerShape(width=24, heads=3, layers=3, inner=96, token_width=20)
CONFIG = NetworkConfig(build="qformer", width=24, heads=3, blocks=3, pooled_path=False)
B, T, A, C = 3, 9, 4, 5


def _rng(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.fixture(scope="module")
def original():
    model = Blip2QFormerModel(Blip2QFormerConfig(
        hidden_size=24, num_attention_heads=3, num_hidden_layers=3, intermediate_size=96, encoder_hidden_size=20
    )).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(0.0, 0.2, generator=_rng(parameter.numel()))
    return model


def _ours(original, members=1):
    network = QFormer(members, SHAPE, _rng())
    network.load_state_dict(from_original(original.state_dict(), network))
    return network


def _batch():
    mask = torch.ones(B, T, dtype=torch.bool)
    mask[1, 5:] = False
    return torch.randn(B, T, 20, generator=_rng(1)), mask, torch.randn(1, 1, 7, 24, generator=_rng(2))


def _reading(tokens, mask):
    return Reading.of(tokens, torch.zeros(mask.shape).masked_fill(~mask, -torch.inf))


@pytest.mark.parametrize("order", ["folded", "projected", "cheaper"])
def test_same_outputs_as_the_original_in_every_order_of_multiplication(original, order):
    tokens, mask, queries = _batch()
    expected = original(
        query_embeds=queries[0].expand(B, -1, -1), encoder_hidden_states=tokens, encoder_attention_mask=mask.long()
    ).last_hidden_state
    found = _ours(original, members=2)(queries.expand(2, -1, -1, -1), _reading(tokens, mask), order=order)
    assert found.shape == (2, B, 7, 24)
    for member in found:
        torch.testing.assert_close(member, expected, rtol=0, atol=1e-5)


def test_gradients_agree_in_both_orders(original):
    tokens, mask, queries = _batch()
    network, found = _ours(original), {}
    for order in ("folded", "projected"):
        loss = network(queries, _reading(tokens, mask), order=order).square().sum()
        found[order] = torch.autograd.grad(loss, list(network.parameters()))
    for folded, projected in zip(*found.values(), strict=True):
        torch.testing.assert_close(folded, projected, rtol=1e-4, atol=1e-4)


def test_weights_go_in_and_out_unchanged(original):
    back, expected = to_original(_ours(original)), original.state_dict()
    assert back.keys() == expected.keys()
    assert all(torch.equal(back[name], expected[name]) for name in expected)


def test_attention_maps_are_those_of_the_original(original):
    tokens, mask, queries = _batch()
    maps = _ours(original).attention(queries, _reading(tokens, mask))
    original.set_attn_implementation("eager")
    expected = original(
        query_embeds=queries[0].expand(B, -1, -1), encoder_hidden_states=tokens, encoder_attention_mask=mask.long(),
        output_attentions=True,
    ).cross_attentions
    original.set_attn_implementation("sdpa")
    assert len(maps) == len(expected) == 2
    for found, layer in zip(maps, expected, strict=True):
        torch.testing.assert_close(found[0].transpose(0, 1), layer, rtol=0, atol=1e-6)


def test_rows_are_read_where_they_lie(original):
    tokens, _, queries = _batch()
    resident = Reading(tokens=tokens, rows=torch.tensor([2, 0]), hidden=torch.zeros(2, T))
    copied = Reading.of(tokens[[2, 0]], torch.zeros(2, T))
    network = _ours(original)
    assert torch.equal(network(queries, resident), network(queries, copied))


def test_pretrained_weights_come_from_a_local_folder(original, tmp_path):
    whole = {f"qformer.{name}": value for name, value in original.state_dict().items()}
    save_file({**whole, "query_tokens": torch.zeros(1, 2, 24)}, tmp_path / "model.safetensors")
    network = build_network(2, A, C, 20, replace(CONFIG, pretrained=str(tmp_path)), _rng())
    state = to_original(network.qformer, member=1)
    assert all(torch.equal(state[name], value) for name, value in original.state_dict().items())


def test_weights_that_do_not_fit_are_refused_with_a_sentence(original, tmp_path):
    with pytest.raises(ModelError, match=r"no \.safetensors file"):
        load_folder(QFormer(1, SHAPE, _rng()), tmp_path)
    state = original.state_dict()
    save_file(state, tmp_path / "model.safetensors")
    with pytest.raises(ModelError, match=r"lack the key 'encoder.layer.3"):
        load_folder(QFormer(1, replace(SHAPE, layers=4), _rng()), tmp_path)
    with pytest.raises(ModelError, match=r"do not fit.*this network needs"):
        load_folder(QFormer(1, replace(SHAPE, inner=32), _rng()), tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"no weights")
    with pytest.raises(ModelError, match="not a readable safetensors file"):
        load_folder(QFormer(1, SHAPE, _rng()), tmp_path)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [({"heads": 5}, "not a multiple"), ({"blocks": 0}, "at least one layer"), ({"self_attention": False}, "light"),
     ({"build": "light", "pretrained": "x"}, "set build"), ({"build": "wide"}, "no build")],
)
def test_configurations_that_make_no_sense(changes, sentence):
    with pytest.raises(ModelError, match=sentence):
        build_network(1, A, C, 20, replace(CONFIG, **changes), _rng())


def _network(members=2, **changes):
    network = build_network(members, A, C, 20, replace(CONFIG, **changes), _rng())
    assert isinstance(network, QFormerNetwork)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(torch.empty_like(parameter).normal_(0.0, 0.1, generator=_rng(1)))
    return network


@pytest.mark.parametrize("pooled_path", [True, False])
def test_padding_changes_nothing_and_permuting_annotators_permutes(pooled_path):
    network = _network(pooled_path=pooled_path)
    tokens, mask, _ = _batch()
    expected = network(tokens, mask)
    assert expected.shape == (2, B, A + 1, C)
    longer = torch.cat([tokens, torch.full((B, 2, 20), 99.0)], 1)
    found = network(longer, torch.nn.functional.pad(mask, (0, 2)))
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-4)
    order = [2, 0, 3, 1]
    with torch.no_grad():
        network.deviation.copy_(network.deviation[:, order])
        network.heads.own.copy_(network.heads.own[:, [*order, A]])
        network.heads.own_bias.copy_(network.heads.own_bias[:, [*order, A]])
    torch.testing.assert_close(network(tokens, mask), expected[:, :, [*order, A]], rtol=0, atol=1e-4)


def test_training_hides_tokens_and_draws_dropout_from_its_own_generator():
    network = _network(token_dropout=0.5, dropout=0.0)
    tokens, mask, _ = _batch()
    assert torch.equal(network(tokens, mask, _rng(3)), network(tokens, mask, _rng(3)))
    assert not torch.equal(network(tokens, mask, _rng(3)), network(tokens, mask))


def test_a_committee_of_this_build_comes_back_from_its_arrays():
    spaces = {"label": SingleChoice(tuple("abcde"))}
    before = Committee(_network(), spaces)
    after = Committee.from_arrays(
        before.arrays(), members=2, annotators=A, spaces=spaces, dim=20, config=replace(CONFIG, pretrained="/gone")
    )
    tokens = [torch.randn(4, 20, generator=_rng(5)).numpy()]
    assert np.array_equal(before.scores(tokens)["label"], after.scores(tokens)["label"])


def _quick(quick):
    network = replace(CONFIG, blocks=2, epochs=3, width=24, learning_rate=1e-3)
    return replace(quick, folds=2, network=network)


def test_it_learns_through_the_ladder(simulated, training_set, quick):
    ladder = fit(training_set(simulated), _quick(quick)).ladder
    assert isinstance(ladder.committee.network, QFormerNetwork)
    found = ladder.predict([simulated.tokens["t0"]], list(ladder.annotators))["label"]
    assert np.isfinite(found.served).all() and found.served.shape[1] == len(ladder.annotators)


@pytest.mark.parametrize("changes", [{"annotators": 1}, {"classes": ("only",)}])
def test_one_annotator_and_one_class_run(changes, training_set, quick):
    size = {"units": 12, "annotators": 2, "classes": ("no", "yes"), "dim": 8} | changes
    simulated = simulate_annotators(np.random.default_rng(0), **size)
    ladder = fit(training_set(simulated), _quick(quick)).ladder
    found = ladder.predict([simulated.tokens["t0"]], list(ladder.annotators))["label"]
    np.testing.assert_allclose(found.served.sum(-1), 1.0, atol=1e-6)


def test_one_task_runs(training_set, quick):
    simulated = simulate_annotators(np.random.default_rng(0), units=1, annotators=2, classes=("no", "yes"), dim=8)
    ladder = fit(training_set(simulated, heldout=0), _quick(quick)).ladder
    found = ladder.predict([simulated.tokens["t0"]], list(ladder.annotators))["label"]
    np.testing.assert_allclose(found.served.sum(-1), 1.0, atol=1e-6)


def test_features_with_nan_are_refused(simulated, training_set, quick):
    data = training_set(simulated)
    broken = replace(data, tokens=lambda units: [simulated.tokens[unit] * np.nan for unit in units])
    with pytest.raises(ModelError, match="NaN"):
        fit(broken, _quick(quick))


def test_duplicate_tasks_get_the_same_answer():
    network = _network()
    tokens, mask, _ = _batch()
    twice = network(tokens[[0, 0]], mask[[0, 0]])
    assert torch.equal(twice[:, 0], twice[:, 1])


def test_videos_are_read_frame_by_frame_with_positions():
    network = VideoQFormerNetwork(A, C, 6, CONFIG, _rng(), frame_queries=2, most_frames=5)
    patches = torch.randn(2, 4, 3, 6, generator=_rng(6))
    mask = torch.tensor([[True] * 4, [True, True, False, False]])
    found = network(patches, mask)
    assert found.shape == (1, 2, A + 1, C)
    other = patches.clone()
    other[1, 2:] = 50.0  # padding
    torch.testing.assert_close(network(other, mask), found, rtol=0, atol=1e-5)
    tokens, seen = network.frame_tokens(patches, mask)
    assert tokens.shape == (2, 8, 24) and seen.sum().item() == 12
    turned = patches[:1].flip(1)
    assert not torch.allclose(network.frame_tokens(turned, mask[:1])[0].sum(1), torch.zeros(1, 24))
    same, _ = network.frame_tokens(turned, mask[:1])
    torch.testing.assert_close(
        (same - network.position[:, :4].expand(1, -1, 2, -1).flatten(1, 2)).view(1, 4, 2, 24).flip(1),
        (tokens[:1] - network.position[:, :4].expand(1, -1, 2, -1).flatten(1, 2)).view(1, 4, 2, 24),
        rtol=0, atol=1e-5,
    )
    found.square().sum().backward()
    assert network.frames.layers[0].read.key.grad.abs().sum() > 0
    with pytest.raises(ModelError, match="sample fewer frames"):
        network(torch.zeros(1, 6, 3, 6), torch.ones(1, 6, dtype=torch.bool))
