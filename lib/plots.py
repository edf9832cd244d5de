"""Figures that two notebooks need, and the style and the parts that every figure is made with.

A figure that one notebook needs is drawn there, in a folded cell before its first use. A function
draws a figure and returns it, not shown: a cell that ends with the call displays it once. Colours
are Okabe and Ito's, which readers with a colour vision deficiency can tell apart; line styles,
markers or labels say the same again.
"""

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from PIL import Image

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = "osD^vPX"
LINES = ("-", "--", "-.", ":")
ROLES = {
    **dict.fromkeys(("positive", "own positive", "same sentence", "paraphrase"), COLOURS[2]),
    **dict.fromkeys(("others", "the others", "other sentences", "another sentence"), COLOURS[1]),
    **dict.fromkeys(("UNA negative", "own UNA negative"), COLOURS[3]),
}
MARGIN = "margin: cosine of paraphrase − of changed sentence"
WIDTH = 8.4  # inches of a figure with one panel, 806 pixels in a notebook
STYLE: Any = dict(mpl.rc_params_from_file(Path(__file__).with_name("plots.mplstyle"), True, False))
STYLE["axes.prop_cycle"] = plt.cycler(color=COLOURS)


def new_figure(columns=1, width=7.0, height=2.8, **options: Any) -> tuple[Figure, list[Axes]]:
    """An empty figure in the common style with `columns` axes side by side; `options` as
    `plt.subplots`.

    The figure is closed at once, so that a notebook shows it only where it is a cell's result.
    """
    with mpl.rc_context(STYLE):
        figure = plt.figure(FigureClass=NotebookFigure, figsize=(width, height))
        axes = figure.subplots(1, columns, squeeze=False, **options)
        plt.close(figure)
    return figure, list(axes[0])


class NotebookFigure(Figure):
    """A figure that a notebook stores at twice the resolution at which it is shown."""

    def _ipython_display_(self) -> None:
        from IPython.display import display

        width, height = (round(inches * self.dpi) for inches in self.get_size_inches())
        alt = self.get_suptitle() or self.axes[0].get_title() or self.axes[0].get_ylabel()
        size = {"image/png": {"width": width, "height": height, "alt": alt}}
        display({"image/png": png(self), "text/plain": repr(self)}, metadata=size, raw=True)


def png(figure: Figure, colours: int = 160) -> bytes:
    """The figure as a PNG file of twice its size in pixels and so many colours.

    The palette holds the figure's own colours: lines and areas keep theirs, and a shade between two
    of them moves by a few of 255 steps.
    """
    full, small = io.BytesIO(), io.BytesIO()
    figure.savefig(full, format="png", dpi=2 * figure.dpi)
    how: Any = {"method": Image.Quantize.MAXCOVERAGE, "kmeans": 3, "dither": Image.Dither.NONE}
    Image.open(full).convert("RGB").quantize(colours, **how).save(small, "png", optimize=True)
    return small.getvalue()


def colour(i: int) -> str:
    """Colour of the i-th group; from the eighth on they come again, with other markers and
    lines."""
    return COLOURS[i % len(COLOURS)]


def role(name: object, i: int) -> str:
    """Colour of a group that has one throughout the course, as positives and negatives have in the
    drawings; else that of the i-th group.

    Example:
        >>> role("positive", 0) == role("paraphrase", 1) == colour(2), role("loss", 0) == colour(0)
        (True, True)
    """
    return ROLES.get(str(name), colour(i))


def marker(i: int) -> str:
    """Marker of the i-th group: 49 groups differ in colour or marker.

    Example:
        >>> len({(colour(i), marker(i)) for i in range(49)})
        49
    """
    return MARKERS[(i + i // len(COLOURS)) % len(MARKERS)]


def line(i: int) -> str:
    """Line style of the i-th group: 28 groups differ in colour or line."""
    return LINES[i % len(LINES)]


def chance_line(axis: Axes, chance: float, line: str, ink: str, **style: Any) -> None:
    """A level line at chance and, above its right end, the word."""
    axis.axhline(chance, color=line, **style)
    place = axis.get_yaxis_transform()
    axis.text(0.98, chance, "chance", color=ink, ha="right", va="bottom", transform=place)


def legend_below(figure: Figure, axis: Axes) -> None:
    """The legend of `axis` under the figure, so that the panel has its whole width."""
    handles, labels = axis.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(3, len(labels)))


@mpl.rc_context(STYLE)
def curves(
    x: Sequence, lines: Mapping[str, Sequence], xlabel: str, ylabel: str, title=""
) -> Figure:
    """Named lines over `x`, told apart by colour and dash, with a gap at NaN."""
    figure, (axis,) = new_figure(width=WIDTH)
    for i, (name, y) in enumerate(lines.items()):
        points = marker(i) if len(x) <= 10 else None
        axis.plot(x, y, color=role(name, i), ls=line(i), marker=points, ms=5, lw=1.8, label=name)
    axis.set(xlabel=xlabel, ylabel=ylabel, title=title)
    axis.legend()
    return figure


@mpl.rc_context(STYLE)
def training(history: Sequence[Mapping], chance: float, title="", score="dev score") -> Figure:
    """Loss beside chance, in-batch accuracy and dev score over the steps of one training, raw
    points.

    Args:
        history: rows with `step` and any of `loss` (nats), `in_batch_accuracy` in [0, 1] and
            `dev_score`, as `lib.training.state.Result.history`; missing values are left out.
        chance: loss at chance, in nats.
        score: label of the dev score, with its unit.
    """
    figure, axes = new_figure(3, 8.4, 2.6, sharex=True)
    keys = {"loss": "loss (nats)", "in_batch_accuracy": "in-batch accuracy", "dev_score": score}
    for i, (axis, key) in enumerate(zip(axes, keys, strict=True)):
        rows = pd.DataFrame(history, columns=["step", key]).dropna()
        axis.plot(rows["step"], rows[key], marker=marker(i), ms=4, lw=1, color=colour(i))
        axis.set(xlabel="step", ylabel=keys[key])
    chance_line(axes[0], chance, "0.4", "0.3", ls="--", lw=1)
    axes[0].set_ylim(bottom=0)
    axes[1].set_ylim(-0.03, 1.05)
    low, high = axes[2].get_ylim()
    missing = max(0, 5 - (high - low)) / 2  # a small change looks small
    axes[2].set_ylim(low - missing, high + missing)
    axes[0].xaxis.set_major_locator(MaxNLocator(integer=True))
    figure.suptitle(title, fontsize=11)
    return figure


@mpl.rc_context(STYLE)
def margins(tables: Mapping[str, pd.DataFrame], xlabel=MARGIN, title="") -> Figure:
    """One row a kind, a dot and its interval a condition; the zero line is where paraphrase and
    changed sentence are equally near.

    Args:
        tables: condition, e.g. before and after → as `lib.evaluate.margin_table`.
    """
    kinds = list(dict.fromkeys(kind for table in tables.values() for kind in table.index))
    figure, (axis,) = new_figure(1, WIDTH, 1.4 + 0.15 * len(kinds) * (1 + len(tables)))
    axis.axvline(0, color="0.4", ls=":", lw=1, zorder=0)
    apart = (np.arange(len(tables)) - (len(tables) - 1) / 2) * 0.6 / len(tables)
    for i, (name, table) in enumerate(tables.items()):
        mean, place = table["mean_margin"], [kinds.index(kind) + apart[i] for kind in table.index]
        ends = (mean - table["low"], table["high"] - mean)
        style: Any = {"color": colour(i), "ms": 4.5, "lw": 1.5, "capsize": 3.5, "label": name}
        axis.errorbar(mean, place, xerr=ends, fmt=marker(i), **style)
    axis.set(xlabel=xlabel, yticks=range(len(kinds)), yticklabels=kinds)
    axis.set_title(title, pad=18)
    for words, side in (("← changed nearer ", "right"), (" paraphrase nearer →", "left")):
        where = axis.get_xaxis_transform()
        axis.text(0, 1.01, words, ha=side, va="bottom", color="0.3", transform=where)
    axis.invert_yaxis()
    legend_below(figure, axis)
    return figure


@mpl.rc_context(STYLE)
def forest(
    differences: pd.DataFrame, xlabel: str, title="", papers: Mapping | None = None
) -> Figure:
    """Differences from a baseline: a dot and its interval a row, the zero line where row and
    baseline are equal, and open diamonds for what a paper printed.

    Args:
        differences: row → `mean` and `95 % ±`, as `statistics.paired_differences`; a row without an
            interval has the dot alone.
        papers: row → the paper's difference; rows that it lacks have no diamond.
    """
    figure, (axis,) = new_figure(1, 6.4, 1.0 + 0.26 * len(differences) + 0.3 * bool(papers))
    axis.axvline(0, color="0.4", lw=1)
    place = np.arange(len(differences))
    style: Any = {"fmt": "o", "color": colour(0), "ms": 5, "lw": 1.8, "label": "ours"}
    axis.errorbar(differences["mean"], place, xerr=differences["95 % ±"], **style)
    if papers:
        theirs = [papers.get(str(row), np.nan) for row in differences.index]
        axis.plot(theirs, place, "D", color=colour(1), mfc="none", ms=6, mew=1.5, label="paper")
        legend_below(figure, axis)
    axis.set_yticks(place, list(differences.index))
    axis.set(xlabel=xlabel, title=title, ylim=(-0.6, len(differences) - 0.4))
    axis.invert_yaxis()
    return figure
