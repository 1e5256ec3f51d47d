from model.data.splits import fold_of, is_heldout


def test_share_is_about_the_percentage_and_stable():
    chosen = [unit for unit in map(str, range(5000)) if is_heldout("7.1", unit, 20)]
    assert 900 < len(chosen) < 1100
    assert chosen[:3] == [unit for unit in map(str, range(5000)) if is_heldout("7.1", unit, 20)][:3]
    assert chosen != [unit for unit in map(str, range(5000)) if is_heldout("8.1", unit, 20)]


def test_a_larger_percentage_only_adds_units():
    small = {unit for unit in map(str, range(2000)) if is_heldout("p", unit, 10)}
    large = {unit for unit in map(str, range(2000)) if is_heldout("p", unit, 30)}
    assert small < large


def test_none_and_all():
    assert not any(is_heldout("p", str(unit), 0) for unit in range(500))
    assert all(is_heldout("p", str(unit), 100) for unit in range(500))


def test_known_values():
    """Pinned: were the hash to change, every project's held-out units would leak into training."""
    assert [unit for unit in map(str, range(30)) if is_heldout("12.1764288000", unit, 20)] == PINNED
    assert [fold_of(str(unit), 4) for unit in range(12)] == FOLDS


def test_regions_follow_their_task():
    assert len({is_heldout("p", f"9/{region}", 50) for region in "abcdefgh"}) == 1
    assert len({fold_of(f"9/{region}", 4) for region in "abcdefgh"}) == 1


def test_folds_are_independent_of_the_heldout_split():
    folds = [fold_of(unit, 4) for unit in map(str, range(4000)) if is_heldout("p", unit, 25)]
    assert all(len(folds) * 0.2 < folds.count(fold) < len(folds) * 0.3 for fold in range(4))


PINNED = ["0", "9", "10", "13", "22", "25", "26"]
FOLDS = [2, 0, 3, 0, 2, 0, 2, 1, 3, 0, 1, 3]
