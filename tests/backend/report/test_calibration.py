"""Whether confidence is true: the sentence, and the plot that says it to everybody."""

from backend.report.calibration import calibration
from backend.report.charts import reliability
from backend.services.statistics.documents import Calibration, CalibrationBin, Figure

BINS = tuple(CalibrationBin(low=low, high=low + 0.1, tasks=tasks, stated=low + 0.05,
                            right=Figure(value=right, low=right - 0.06, high=right + 0.06))
             for low, tasks, right in ((0.7, 20, 0.75), (0.8, 120, 0.84)))


def test_it_says_what_most_tasks_show_and_how_that_is_known():
    said = calibration(Calibration(tasks=140, bins=BINS, gap=0.012, votes=4))
    assert said.startswith("Of labels stated at 80\u202f% to 90\u202f%, 84\u202f% were the panel’s majority (120 ")
    assert "hiding some of the votes" in said and "4 votes or more" in said and "1.2 points apart" in said


def test_few_tasks_are_too_few():
    for found in (None, Calibration(tasks=12, bins=BINS[:1], gap=0.2, votes=4)):
        assert calibration(found).startswith("Too few to check")


def test_the_plot_says_its_numbers_and_scales():
    drawn = reliability(BINS, title="Confidence")
    assert 'role="img"' in drawn and "stated 85\u202f%, right 84\u202f% of 120" in drawn
    assert "style=" not in drawn and 'width="100%"' in drawn and drawn.count("<circle") == 2
