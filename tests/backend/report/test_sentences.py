"""Sentences about figures: what they rest on is said, and a loss is said as plainly as a gain."""

from __future__ import annotations

from dataclasses import replace

from backend.report import sentences
from backend.services.statistics.documents import UNKNOWN, Figure, LadderFigures, ModelScore
from tests.backend.web.site_documents import CONTROL, Writer

OVERVIEW = Writer().overview()
AGREEMENT = OVERVIEW.controls[0].agreement


def way(name, accuracy, loss, votes=500):
    return ModelScore(name=name, votes=votes, accuracy=accuracy, accuracy_annotator_mean=accuracy, log_loss=loss,
                      calibration_error=None, weight=None)


def ladder(*ways):
    return LadderFigures(version="r3", heldout=ways, cross_validation=(), control_arm=None, had_i_answered=None)


def test_a_loss_is_said():
    worse = sentences.ladder(CONTROL, ladder(way("served", 0.6, 0.9), way("prior", 0.5, 1.0), way("pooled", 0.7, 0.7)))
    assert "60\u202f%" in worse and "worse than those of the best of them (log-loss 0.900 against 0.700)" in worse
    better = sentences.ladder(CONTROL, ladder(way("served", 0.8, 0.5), way("prior", 0.5, 1.0)))
    assert "Its probabilities are better" in better and "rough" not in better
    same = sentences.ladder(CONTROL, ladder(way("served", 0.8, 0.903), way("prior", 0.5, 0.906)))
    assert "as good as" in same  # a difference that nobody sees is none, on every page


def test_few_votes_are_called_few():
    assert "rough" in sentences.ladder(CONTROL, ladder(way("served", 0.8, 0.5, votes=40)))
    assert "no votes were held out" in sentences.ladder(CONTROL, ladder())


def test_agreement_is_judged_by_krippendorff():
    for alpha, words in ((0.85, "relied on"), (0.7, "tentative"), (0.5, "low"), (0.05, "hardly more than guessing")):
        said = sentences.agreement(CONTROL, replace(AGREEMENT, alpha=Figure(value=alpha)))
        assert words in said and f"α = {alpha:.2f}," in said
    few = sentences.agreement(CONTROL, replace(AGREEMENT, alpha=Figure(value=1.0), tasks=2))
    assert "α = 1.00, which is known from too few tasks to judge by. It rests on 2 tasks with two votes" in few
    assert "no task has two votes" in sentences.agreement(CONTROL, replace(AGREEMENT, alpha=UNKNOWN))


def test_what_is_unknown_is_not_said():
    writer = Writer()
    row = writer.row(1)
    figures = replace(row.controls[CONTROL], accuracy=UNKNOWN, fault="", unrelated=False, predictability=None,
                      common_tasks=0, common_people=0)
    quiet = replace(row, relative_speed=None, accepted=replace(row.accepted, shown=0))
    said = sentences.annotator("Zoe", quiet, figures)
    assert said == [f"Zoe gave {figures.votes} votes.",
                    "No task in common with others yet, so nothing is said of how they label."]
    few = sentences.annotator("Zoe", quiet, replace(figures, common_tasks=12, common_people=1))
    assert "So far 12 of 20 common tasks and one other person of two" in few[1]
    lenient = writer.row(2)
    told = sentences.annotator("Zoe", lenient, lenient.controls[CONTROL])
    one, other = writer.classes[:2]
    assert f"Zoe calls “{other}” what the others call “{one}”: 31 of 40 (usual: 9\u202f%)." in told
    whole = " ".join(sentences.annotator("Zoe", row, row.controls[CONTROL]))
    assert "what the model sees in it tells what Zoe said" in whole and "in at most 3\u202f% of the projects" in whole
