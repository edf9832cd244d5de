"""Figures of the notebooks: each function draws one and returns it, not shown.

A cell that ends with the call displays the figure once. Colours are Okabe and Ito's, which readers
with a colour vision deficiency can tell apart; line styles, markers or labels say the same again. A
score that is not a number, as of a training that has collapsed, is a cross at the edge of its axis
and makes the mean of its seeds not a number too.
"""

import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = "osD^vPX"
LINES = ("-", "--", "-.", ":")
STYLE: Any = {
    "figure.dpi": 96,
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.prop_cycle": plt.cycler(color=COLOURS),
    "legend.frameon": False,
    "figure.constrained_layout.use": True,
}


def new_figure(
    columns: int = 1, width: float = 7.0, height: float = 2.8, **options
) -> tuple[Figure, list[Axes]]:
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
    """A figure that a notebook stores as a small PNG: 64 colours, a third of the usual size."""

    def _ipython_display_(self) -> None:
        from IPython.display import display

        display({"image/png": png(self), "text/plain": repr(self)}, raw=True)


def png(figure: Figure) -> bytes:
    """The figure as a PNG file of 64 colours."""
    full = io.BytesIO()
    figure.savefig(full, format="png", dpi=figure.dpi)
    return with_palette(full.getvalue(), 64)


def with_palette(picture: bytes, colours: int) -> bytes:
    """A PNG file reduced to so many colours."""
    small = io.BytesIO()
    reduced = (
        Image.open(io.BytesIO(picture)).convert("RGB").quantize(colours, dither=Image.Dither.NONE)
    )
    reduced.save(small, format="png", optimize=True)
    return small.getvalue()


def colour(i: int) -> str:
    """Colour of the i-th group; from the eighth on they come again, with other markers and
    lines."""
    return COLOURS[i % len(COLOURS)]


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


def _cross(
    axis: Axes, where: Iterable[float], scores: Iterable[float], i: int, edge: str = "bottom"
) -> None:
    """A cross of the i-th group's colour at the edge of the axis for each of `scores` that is not a
    number."""
    lost = [w for w, score in zip(where, scores, strict=True) if np.isnan(score)]
    if not lost:
        return
    inside = [0.03] * len(lost)
    style: Any = {"color": colour(i), "ms": 7, "mew": 2, "clip_on": False, "gid": "collapsed"}
    if edge == "bottom":
        axis.plot(lost, inside, "x", transform=axis.get_xaxis_transform(), **style)
    else:
        axis.plot(inside, lost, "x", transform=axis.get_yaxis_transform(), **style)


def _column(rows: Sequence[Mapping], key: str) -> tuple[np.ndarray, np.ndarray]:
    found = [
        (row["step"], row[key])
        for row in rows
        if row.get(key) is not None and not np.isnan(row[key])
    ]
    steps, values = zip(*found, strict=True) if found else ((), ())
    return np.array(steps), np.array(values)


def _chance_line(axis: Axes, chance: float, line: str, ink: str, **style: Any) -> None:
    """A level line at chance and, above its right end, the word."""
    axis.axhline(chance, color=line, **style)
    place = axis.get_yaxis_transform()
    axis.text(0.98, chance, "chance", color=ink, ha="right", va="bottom", transform=place)


# --- 01: InfoNCE
# -------------------------------------------------------------------------------------------


@mpl.rc_context(STYLE)
def circles(
    panels: Mapping[str, tuple[np.ndarray, np.ndarray]],
    labels: Sequence[str],
    arrows: np.ndarray | None = None,
) -> Figure:
    """Pairs of unit vectors on the circle, one panel a state.

    Args:
        panels: title → (anchors, positives), each (n, 2), on the unit circle.
        labels: a name for each of the n pairs, written beside the anchor.
        arrows: (n, 2), drawn from the anchors of the last panel, which zooms in on them; e.g.
            −gradient.
    """
    figure, axes = new_figure(len(panels), 3.4 * len(panels), 3.3, subplot_kw={"aspect": "equal"})
    turn = np.linspace(0, 2 * np.pi, 200)
    for axis, (title, (anchors, positives)) in zip(axes, panels.items(), strict=True):
        axis.plot(np.cos(turn), np.sin(turn), color="0.8", lw=1, zorder=0)
        for i, (a, p) in enumerate(zip(anchors, positives, strict=True)):
            axis.plot(*a, marker(i), color=colour(i), ms=8)
            axis.plot(*p, marker(i), color=colour(i), ms=8, fillstyle="none", mew=1.5)
            axis.annotate(labels[i], 1.26 * a, ha="center", va="center", color=colour(i))
        axis.set(title=title, xlim=(-1.45, 1.45), ylim=(-1.45, 1.45), xticks=[], yticks=[])
        axis.spines[:].set_visible(False)
    if arrows is not None:
        anchors = list(panels.values())[-1][0]
        for i, (start, arrow) in enumerate(zip(anchors, arrows, strict=True)):
            style = {"arrowstyle": "-|>", "color": colour(i), "lw": 1.8}
            axes[-1].annotate("", xy=start + arrow, xytext=start, arrowprops=style)
        seen = np.concatenate([anchors, anchors + arrows, 1.26 * anchors])
        (left, low), (right, high) = seen.min(0) - 0.12, seen.max(0) + 0.12
        axes[-1].set(xlim=(left, right), ylim=(low, high))
    return figure


@mpl.rc_context(STYLE)
def matrix(
    values: np.ndarray,
    rows: Sequence[str],
    columns: Sequence[str],
    title: str = "",
    frame: bool = True,
) -> Figure:
    """A small matrix as a heat map with its numbers written in; NaN is left blank, `frame` marks
    the diagonal."""
    figure, (axis,) = new_figure(
        width=max(4.6, 1.6 + 0.85 * len(columns)), height=max(3.0, 0.6 + 0.5 * len(rows))
    )
    top, low = np.nanmax(values), min(0.0, np.nanmin(values))
    axis.imshow(
        values, cmap="cividis", vmin=low, vmax=top, aspect="auto" if len(rows) > 4 else "equal"
    )
    for i, j in np.ndindex(*values.shape):
        dark = values[i, j] < low + 0.55 * (top - low)
        number = "" if np.isnan(values[i, j]) else f"{values[i, j]:.2f}"
        axis.text(j, i, number, ha="center", va="center", color="white" if dark else "black")
        if frame and i == j:
            axis.add_patch(
                mpl.patches.Rectangle(
                    (j - 0.47, i - 0.47), 0.94, 0.94, fill=False, ec="#D55E00", lw=2
                )
            )
    axis.set_xticks(range(len(columns)), columns)
    axis.set_yticks(range(len(rows)), rows)
    axis.set_title(title)
    axis.spines[:].set_visible(False)
    axis.tick_params(length=0)
    return figure


@mpl.rc_context(STYLE)
def curves(
    x: Sequence[float],
    lines: Mapping[str, Sequence[float]],
    xlabel: str,
    ylabel: str,
    title: str = "",
    log: bool = False,
    marks: Mapping[str, float] | None = None,
) -> Figure:
    """Named lines over `x`, told apart by colour and dash, with a gap at NaN; `marks` are named
    vertical lines."""
    figure, (axis,) = new_figure(width=5.6)
    for i, (name, y) in enumerate(lines.items()):
        points = marker(i) if len(x) <= 10 else None
        axis.plot(x, y, color=colour(i), ls=line(i), marker=points, ms=5, lw=1.8, label=name)
    for name, place in (marks or {}).items():
        axis.axvline(place, color="0.5", lw=1, ls=":")
        where: Any = {
            "transform": axis.get_xaxis_transform(),
            "ha": "right",
            "va": "center",
            "rotation": 90,
        }
        axis.text(place, 0.55, name, color="0.35", fontsize=8, **where)
    axis.set(xlabel=xlabel, ylabel=ylabel, title=title, xscale="log" if log else "linear")
    axis.legend()
    return figure


@mpl.rc_context(STYLE)
def candidate_shares(similarities: np.ndarray, temperatures: Sequence[float]) -> Figure:
    """Softmax of one anchor's candidates for several temperatures, one panel each.

    Args:
        similarities: cosines (n,); the first candidate is the positive.
    """
    figure, axes = new_figure(len(temperatures), 2.3 * len(temperatures), 2.5, sharey=True)
    for axis, tau in zip(axes, temperatures, strict=True):
        share = np.exp((similarities - similarities.max()) / tau)
        bars = axis.bar(
            range(len(share)),
            share / share.sum(),
            color=[COLOURS[0]] + [COLOURS[1]] * (len(share) - 1),
        )
        bars[0].set_hatch("//")
        axis.set_xticks(range(len(share)), [f"{s:.2f}" for s in similarities], rotation=45)
        axis.set(title=f"τ = {tau:.2f}", xlabel="cosine (first: positive)", ylim=(0, 1))
    axes[0].set_ylabel("share of the softmax")
    return figure


@mpl.rc_context(STYLE)
def against_chance(history: Sequence[Mapping], chance: float, title: str = "") -> Figure:
    """Left: loss of each step beside the chance line. Right: in-batch accuracy.

    Args:
        history: rows with `step`, `loss` (nats) and `in_batch_accuracy` in [0, 1], as
            `lib.train.Result.history`.
        chance: loss at chance, in nats.
    """
    figure, (left, right) = new_figure(2, 7.0, 2.6)
    left.plot(*_column(history, "loss"), "o-", ms=3, lw=1)
    _chance_line(left, chance, COLOURS[1], COLOURS[1], ls="--", lw=1.2)
    left.set(
        xlabel="step",
        ylabel="loss (nats)",
        title=title,
        ylim=(0, 1.15 * max(chance, *_column(history, "loss")[1])),
    )
    right.plot(*_column(history, "in_batch_accuracy"), "s-", ms=3, lw=1, color=COLOURS[2])
    right.set(xlabel="step", ylabel="in-batch accuracy", ylim=(-0.03, 1.05))
    return figure


@mpl.rc_context(STYLE)
def spectra(values: Mapping[str, np.ndarray], title: str = "") -> Figure:
    """Singular values of several sets of embeddings, each divided by its largest, both axes
    logarithmic."""
    figure, (axis,) = new_figure(width=5.6)
    for i, (name, s) in enumerate(values.items()):
        rank = np.arange(1, len(s) + 1)
        axis.loglog(rank, s / s[0], color=colour(i), ls=line(i), lw=1.8, label=name)
    axis.set(xlabel="rank of the singular value", ylabel="value / largest value", title=title)
    axis.legend()
    return figure


# --- 02: SimCSE
# --------------------------------------------------------------------------------------------


@mpl.rc_context(STYLE)
def training(
    history: Sequence[Mapping], chance: float, title: str = "", score: str = "dev score"
) -> Figure:
    """Loss beside chance, in-batch accuracy and dev score over the steps of one training, raw
    points.

    Args:
        history: rows with `step` and any of `loss` (nats), `in_batch_accuracy` in [0, 1] and
            `dev_score`, as `lib.train.Result.history`; missing values are left out.
        chance: loss at chance, in nats.
        score: label of the dev score, with its unit.
    """
    figure, axes = new_figure(3, 8.4, 2.5)
    keys = {"loss": "loss (nats)", "in_batch_accuracy": "in-batch accuracy", "dev_score": score}
    for i, (axis, (key, label)) in enumerate(zip(axes, keys.items(), strict=True)):
        axis.plot(*_column(history, key), marker=marker(i), ms=4, lw=1, color=colour(i))
        axis.set(xlabel="step", ylabel=label)
    _chance_line(axes[0], chance, "0.4", "0.3", ls="--", lw=1)
    axes[0].set_ylim(bottom=0)
    axes[1].set_ylim(-0.03, 1.05)
    figure.suptitle(title, fontsize=9)
    return figure


@mpl.rc_context(STYLE)
def geometry_path(
    paths: Mapping[str, Sequence[tuple[float, float]]], steps: Sequence[int], title: str = ""
) -> Figure:
    """The way of trainings through the plane of alignment and uniformity, each point labelled with
    its step.

    Args:
        paths: name → (alignment, uniformity) at each of `steps`.
    """
    figure, (axis,) = new_figure(width=5.0, height=3.2)
    for i, (name, points) in enumerate(paths.items()):
        x, y = zip(*points, strict=True)
        axis.plot(x, y, marker=marker(i), color=colour(i), lw=1, label=name)
        for step, point in zip(steps, points, strict=True):
            axis.annotate(str(step), point, xytext=(5, 4), textcoords="offset points", fontsize=8)
    axis.set(
        xlabel="alignment (lower: positives closer)",
        ylabel="uniformity (lower: more spread)",
        title=title,
    )
    axis.margins(0.15)
    axis.legend()
    return figure


@mpl.rc_context(STYLE)
def by_layer(
    loss: Mapping[str, Sequence[float]],
    accuracy: Mapping[str, Sequence[float]],
    chance: float,
    title: str = "",
) -> Figure:
    """Loss (left, with the chance line) and in-batch accuracy (right) of vectors taken after each
    layer."""
    figure, (left, right) = new_figure(2, 7.2, 2.6)
    for axis, lines in ((left, loss), (right, accuracy)):
        for i, (name, y) in enumerate(lines.items()):
            axis.plot(
                range(len(y)), y, marker=marker(i), color=colour(i), ls=line(i), lw=1.5, label=name
            )
        axis.set_xticks(range(len(next(iter(lines.values())))))
    _chance_line(left, chance, "0.4", "0.3", ls=":", lw=1)
    left.set(
        xlabel="layer (0: embeddings)", ylabel="loss (nats)", ylim=(0, 1.15 * chance), title=title
    )
    right.set(xlabel="layer (0: embeddings)", ylabel="in-batch accuracy", ylim=(-0.03, 1.05))
    right.legend()
    return figure


@mpl.rc_context(STYLE)
def seeds(
    columns: Mapping[str, Sequence[float]], names: Sequence[object], ylabel: str, title: str = ""
) -> Figure:
    """Scores of several seeds under several conditions: a line joins the points of one seed, a bar
    is the mean.

    A seed without a score under a condition is a cross, counted in the condition's label, which
    then has no mean.
    """
    labels = 0.08 * len(columns) * max(map(len, columns))  # inches that they need side by side
    figure, (axis,) = new_figure(width=max(5.0, 1.1 + labels), height=3.0)
    for i, (seed, scores) in enumerate(
        zip(names, zip(*columns.values(), strict=True), strict=True)
    ):
        axis.plot(
            range(len(scores)),
            scores,
            line(i) + marker(i),
            color=colour(i),
            lw=1,
            ms=5,
            label=f"seed {seed}",
        )
        _cross(axis, range(len(scores)), scores, i)
    below = []
    for i, (name, values) in enumerate(columns.items()):
        axis.hlines(np.mean(values), i - 0.16, i + 0.16, color="black", lw=2.5, zorder=3)
        collapsed = int(np.isnan(values).sum())
        below.append(f"{name}\n{collapsed} of {len(values)} collapsed" if collapsed else name)
    axis.set_xticks(range(len(columns)), below)
    axis.set(ylabel=ylabel, title=title, xlim=(-0.4, len(columns) - 0.6))
    axis.legend(bbox_to_anchor=(1.0, 1.0), loc="upper left")
    return figure


@mpl.rc_context(STYLE)
def kinds(
    names: Sequence[str], conditions: Mapping[str, Sequence[float]], xlabel: str, title: str = ""
) -> Figure:
    """One line a kind of pair with a point a condition; the dotted line is a coin's 0.5, a cross a
    score of NaN."""
    figure, (axis,) = new_figure(width=6.4, height=0.9 + 0.28 * len(names))
    place = np.arange(len(names))
    values = np.array(list(conditions.values()))
    axis.hlines(place, np.fmin.reduce(values), np.fmax.reduce(values), color="0.7", lw=2, zorder=1)
    for i, (name, scores) in enumerate(conditions.items()):
        axis.plot(scores, place, marker(i), color=colour(i), ms=7, label=name)
        _cross(axis, place, scores, i, "left")
    axis.axvline(0.5, color="0.4", ls=":", lw=1)
    axis.set_yticks(place, names)
    axis.set(xlabel=xlabel, title=title)
    axis.invert_yaxis()
    axis.legend(bbox_to_anchor=(1.0, 1.0), loc="upper left")
    return figure


@mpl.rc_context(STYLE)
def lengths(tokens: np.ndarray, cut: int, title: str = "") -> Figure:
    """Histogram of sentence lengths in tokens, with the place where training cuts them."""
    figure, (axis,) = new_figure(width=5.0, height=2.4)
    axis.hist(
        tokens, bins=list(np.arange(0.5, max(cut, int(np.max(tokens))) + 1.5)), color=COLOURS[0]
    )
    axis.axvline(cut, color=COLOURS[1], ls="--", lw=1.5)
    axis.text(cut, axis.get_ylim()[1], f"cut at {cut} ", color=COLOURS[1], ha="right", va="top")
    axis.set(xlabel="tokens in a sentence", ylabel="sentences", title=title)
    return figure


@mpl.rc_context(STYLE)
def sweep(
    x: Sequence[float],
    y: Sequence[float],
    baseline: float,
    xlabel: str,
    ylabel: str,
    title: str = "",
) -> Figure:
    """Scores over a hyper-parameter on a logarithmic axis, one point a training, beside the
    untrained encoder.

    A training without a score is a cross.
    """
    figure, (axis,) = new_figure(width=5.0, height=2.6)
    axis.semilogx(x, y, "o-", lw=1, ms=6, color=colour(0), label="trained")
    _cross(axis, x, y, 0)
    axis.axhline(baseline, color=COLOURS[1], ls="--", lw=1.2, label="untrained")
    axis.set_xticks(list(x), [f"{value:g}" for value in x])
    axis.minorticks_off()
    axis.set(xlabel=xlabel, ylabel=ylabel, title=title)
    axis.legend()
    return figure


# --- 03: ConSERT
# -------------------------------------------------------------------------------------------


@mpl.rc_context(STYLE)
def embedded(panels: Mapping[str, np.ndarray], tokens: Sequence[str], title: str = "") -> Figure:
    """Embeddings of one sentence, a panel (t, d) a view: absolute values from light to dark, zeros
    white."""
    figure, axes = new_figure(
        len(panels), 1.0 + 1.5 * len(panels), 0.9 + 0.2 * len(tokens), sharey=True
    )
    top = np.quantile(np.abs(next(iter(panels.values()))), 0.98)
    colours = mpl.colormaps["Blues"].with_extremes(bad="white")
    for axis, (name, x) in zip(axes, panels.items(), strict=True):
        shown = np.ma.masked_equal(np.abs(x), 0)
        axis.imshow(
            0.25 * top + 0.75 * shown,
            cmap=colours,
            vmin=0,
            vmax=top,
            aspect="auto",
            interpolation="nearest",
        )
        axis.set(title=name, xticks=[0, x.shape[1] - 1], xlabel="dimension")
    axes[0].set_yticks(range(len(tokens)), tokens)
    figure.suptitle(title, fontsize=9)
    return figure


@mpl.rc_context(STYLE)
def points(
    panels: Mapping[str, Mapping[str, tuple]], xlabel: str = "", ylabel: str = "", title: str = ""
) -> Figure:
    """Scatter plots on shared axes: panel → group → (x, y), each group with its colour and
    marker."""
    figure, axes = new_figure(len(panels), 0.8 + 2.5 * len(panels), 3.0, sharex=True, sharey=True)
    for axis, (name, groups) in zip(axes, panels.items(), strict=True):
        for i, (group, (x, y)) in enumerate(groups.items()):
            style: Any = {"color": colour(i), "marker": marker(i)}
            axis.scatter(
                x, y, s=9 if len(x) > 30 else 30, alpha=0.6, linewidths=0, label=group, **style
            )
        axis.set(title=name, xlabel=xlabel)
    axes[0].set_ylabel(ylabel)
    if len(next(iter(panels.values()))) > 1:
        axes[-1].legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), markerscale=2)
    figure.suptitle(title, fontsize=9)
    return figure


# --- 04: UNA
# -----------------------------------------------------------------------------------------------


@mpl.rc_context(STYLE)
def words(names: Sequence[str], panels: Mapping[str, Sequence[float]], title: str = "") -> Figure:
    """Bars over the words of a sentence, one panel a quantity; the first word with the largest
    value is hatched."""
    figure, axes = new_figure(len(panels), 3.9 * len(panels), 0.9 + 0.21 * len(names), sharey=True)
    for i, (axis, (label, values)) in enumerate(zip(axes, panels.items(), strict=True)):
        bars = axis.barh(range(len(names)), values, color=colour(i))
        bars[int(np.argmax(values))].set_hatch("//")
        axis.set(xlabel=label)
        for place, value in enumerate(values):
            axis.text(value, place, f" {value:.2f}", va="center", fontsize=8)
        axis.margins(x=0.15)
    axes[0].set_yticks(range(len(names)), names)
    axes[0].invert_yaxis()
    axes[0].set_title(title)
    return figure


@mpl.rc_context(STYLE)
def relevance(s: np.ndarray, place: int, radius: int, term: str, title: str = "") -> Figure:
    """Left: the sorted relevance s with the window of a term; right: the probabilities of what may
    replace it.

    Args:
        s: ascending, (V,).
        place: the term's place in `s`; radius: r terms on either side.
    """
    figure, (left, right) = new_figure(2, 8.0, 2.7)
    first, last = max(place - radius, 0), min(place + radius + 1, len(s))
    left.plot(np.arange(len(s)), s, lw=1.5, drawstyle="steps-mid")
    left.axvspan(first, last - 1, color=COLOURS[1], alpha=0.35, lw=0)
    left.annotate(
        term,
        (place, s[place]),
        xytext=(-14, 14),
        textcoords="offset points",
        arrowprops={"arrowstyle": "-"},
    )
    left.set(xlabel="terms, sorted by s", ylabel="s, highest TF-IDF (nats)", title=title)
    weights = s[first:last] * (np.arange(first, last) != place)
    right.plot(
        np.arange(first, last) - place,
        weights / max(weights.sum(), 1e-12),
        ".",
        ms=4,
        color=COLOURS[1],
    )
    right.set(xlabel=f"places from “{term}”", ylabel="probability", ylim=(0, None))
    return figure


@mpl.rc_context(STYLE)
def histograms(
    groups: Mapping[str, np.ndarray], bins: Sequence[float], xlabel: str, title: str = ""
) -> Figure:
    """Outlined histograms over each other, told apart by colour and line style; shares, not
    counts."""
    figure, (axis,) = new_figure(width=5.6, height=2.6)
    for i, (name, values) in enumerate(groups.items()):
        weights = np.full(len(values), 1 / max(len(values), 1))
        style: Any = {"histtype": "step", "color": colour(i), "ls": line(i), "lw": 1.8}
        axis.hist(values, bins=list(bins), weights=weights, label=name, **style)
    axis.set(xlabel=xlabel, ylabel="share of the sentences", title=title)
    axis.legend()
    return figure


@mpl.rc_context(STYLE)
def roles(panels: Mapping[str, tuple[Sequence[str], Sequence[str], Sequence[str]]]) -> Figure:
    """Who is what to whom in a loss: a grid of letters for each panel.

    Args:
        panels: title → (names of the rows, names of the columns, one string a row with a letter for
            each column): `+` positive, `-` negative, `h` hard negative, `.` not in the sum.
    """
    looks = {
        "+": ("#009E73", "positive"),
        "-": ("#D9D9D9", "negative"),
        "h": ("#D55E00", "hard negative"),
        ".": ("white", ""),
    }
    figure, axes = new_figure(len(panels), 3.3 * len(panels), 3.4)
    for axis, (title, (rows, columns, letters)) in zip(axes, panels.items(), strict=True):
        for i, row in enumerate(letters):
            for j, letter in enumerate(row):
                box = mpl.patches.Rectangle(
                    (j - 0.46, i - 0.46), 0.92, 0.92, fc=looks[letter][0], ec="0.6", lw=0.5
                )
                axis.add_patch(box)
                axis.text(j, i, letter.replace(".", "").replace("-", "–"), ha="center", va="center")
        axis.set(
            xlim=(-0.6, len(columns) - 0.4),
            ylim=(len(rows) - 0.4, -0.6),
            aspect="equal",
            title=title,
        )
        axis.set_xticks(range(len(columns)), columns)
        axis.set_yticks(range(len(rows)), rows)
        axis.spines[:].set_visible(False)
        axis.tick_params(length=0)
    return figure


@mpl.rc_context(STYLE)
def dots(names: Sequence[str], groups: Mapping[str, tuple], xlabel: str, title: str = "") -> Figure:
    """Differences by name: one marker a group, with a bar of ± its half-width where there is one.

    Args:
        groups: label → (values, half-widths or None), each as long as `names`; NaN leaves a place
            empty.
    """
    figure, (axis,) = new_figure(width=7.0, height=0.9 + 0.24 * len(names))
    for i, (label, (values, half)) in enumerate(groups.items()):
        place = np.arange(len(names)) + 0.18 * (i - (len(groups) - 1) / 2)
        axis.errorbar(
            values, place, xerr=half, fmt=marker(i), color=colour(i), ms=5, capsize=2, label=label
        )
    axis.axvline(0, color="0.4", ls=":", lw=1)
    axis.set_yticks(range(len(names)), names)
    axis.set(xlabel=xlabel, title=title)
    axis.invert_yaxis()
    axis.legend(bbox_to_anchor=(1.0, 1.0), loc="upper left")
    return figure
