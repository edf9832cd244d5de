import gzip
import io
import lzma
import os
import shutil
import tarfile
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lib import data, paths
from lib.__main__ import main as cli
from lib.data import corpora, fetch, readers, sets

REAL = Path(os.environ.get("CSE_DATA", "."))
BINARY = [name for name, files in sets.TRANSFER_FILES.items() if "one" in files]

sentence = st.text(
    st.characters(codec="utf-8", exclude_characters="\n\r\t\x00", exclude_categories=("Cs",)),
    min_size=1,
)
clean = sentence.map(lambda s: s.replace("\ufeff", "").strip()).filter(bool)
score = st.floats(0, 5, allow_nan=False)
in_tmp_path = settings(
    max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture(autouse=True)
def _no_other_data(monkeypatch):
    monkeypatch.delenv("CSE_DATA", raising=False)
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)


def write(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.fixture
def own_sets(tmp_path):
    """The sets in the test's folder are its own, of any size."""
    (tmp_path / sets.OWN_SETS).touch()


own = pytest.mark.usefixtures("own_sets")


# --- sentences to look at


def test_handwritten_lines_have_a_paraphrase_or_none(tmp_path):
    path = write(tmp_path / "a.txt", "# head\n## snow\none | eins\n\n two \n#\nNo. #3 |drei\n")
    assert readers.handwritten_file(path) == [("one", "eins"), ("two", ""), ("No. #3", "drei")]


LINES = [f"sentence number {i} of some" for i in range(30)]
TOO_SHORT, TOO_LONG = "too short here", "long " * 41


def test_own_sentences_are_searched_where_no_real_text_is(tmp_path):
    own = data.handwritten()
    assert data.searchable(tmp_path)[0] == own
    few, what = data.searchable(tmp_path, n=5)
    assert len(set(few)) == 5 and set(few) < set(own)
    assert what.startswith(f"5 of the {len(own):,} ")
    assert data.searchable(tmp_path, n=5)[0] == few


@own
@pytest.mark.parametrize(
    ("file", "what"),
    [(data.WIKI1M, "of wiki1m"), ("corpus/wiki_slice.txt", "at the beginning of wiki1m")],
)
def test_real_sentences_are_searched_where_they_are(tmp_path, monkeypatch, file, what):
    write(tmp_path / file, "\n".join([TOO_SHORT, *LINES, TOO_LONG, LINES[0]]))
    monkeypatch.setattr(corpora, "HEAD", 33)
    found, told = data.searchable(tmp_path)
    assert found == LINES and told.startswith(f"30 of the 33 sentences {what}")
    drawn, _ = data.searchable(tmp_path, n=7)
    assert len(set(drawn)) == 7 and set(drawn) < set(LINES)
    assert data.searchable(tmp_path, n=3)[0] == drawn[:3]


# --- sentence files


@in_tmp_path
@given(
    lines=st.lists(clean),
    ending=st.sampled_from(["\n", "\r\n"]),
    bom=st.booleans(),
    suffix=st.sampled_from(["", ".xz", ".gz"]),
)
def test_read_lines_round_trip(tmp_path, lines, ending, bom, suffix):
    raw = (b"\xef\xbb\xbf" if bom else b"") + "".join(line + ending for line in lines).encode()
    compress = {"": bytes, ".xz": lzma.compress, ".gz": gzip.compress}[suffix]
    path = write(tmp_path / f"a.txt{suffix}", compress(raw))
    assert data.read_lines(path) == lines


def test_read_lines_skips_blank_lines_and_keeps_unicode_separators(tmp_path):
    path = write(tmp_path / "a.txt", "one\n\n  \n two \u2028 still two\nthree\x0b.")
    assert data.read_lines(path) == ["one", "two \u2028 still two", "three\x0b."]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", b"fine\nalso\nbad \xff byte\n", r"a\.txt, line 3: not valid UTF-8"),
        ("a.txt.xz", lzma.compress(b"x\n" * 999)[:-20], "damaged archive"),
        ("a.txt.gz", gzip.compress(b"x y\n" * 999, mtime=0)[:20] + b"\xff" * 40, "damaged archive"),
        ("a.txt", "a b\n".encode("utf-16"), "line 1: NUL"),
        ("a.txt", b"one\r\ntwo\rthree\r\n", r"a\.txt, line 2: .*carriage return"),
        ("a.txt", b"one\n" + b"x" * 1_000_001, "line 2: .*1,000,000 bytes"),
    ],
)
def test_a_damaged_text_file_is_named_with_its_line(tmp_path, name, content, message):
    path = write(tmp_path / name, content)
    for read in (data.read_lines, data.read_aligned, data.corpus):
        with pytest.raises(ValueError, match=message):
            read(path)


@pytest.mark.parametrize("name", ["a.csv.gz", "a.parquet"])
def test_a_table_is_no_text_file(tmp_path, name):
    """For training, for positives, to augment and to search: one rule, one sentence."""
    path = write(tmp_path / name, "id,text\n1,A sentence.\n")
    text = write(tmp_path / "a.txt", "A sentence.\n")
    for read in (data.read_lines, data.corpus, lambda p: data.aligned_corpus(text, p)):
        with pytest.raises(ValueError, match=r"one sentence a line in a \.txt file"):
            read(path)


def test_repeated_training_lines_are_counted_once_in_a_warning(tmp_path):
    path = write(tmp_path / "a.txt", "one\ntwo\none\none\n")
    with pytest.warns(
        UserWarning, match=r"2 of 4 lines of .*a\.txt' repeat an earlier line"
    ) as all_:
        assert data.training_text(path) == data.corpus(path)
    assert len(all_) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert data.training_text("mini", n=100) == data.corpus("mini", n=100)


def test_aligned_lines_keep_their_numbers(tmp_path):
    path = write(tmp_path / "a.txt.gz", gzip.compress(b"\xef\xbb\xbf one\r\n\r\n \nfour"))
    assert data.read_aligned(path) == ["one", "", "", "four"]
    with pytest.raises(FileNotFoundError, match="no file"):
        data.read_aligned(tmp_path / "b.txt")


# --- graded pairs


@in_tmp_path
@given(rows=st.lists(st.tuples(clean, clean, score, clean), min_size=1))
def test_mini_pairs_round_trip(tmp_path, rows):
    lines = "".join(f"{g!r}\t{kind}\t{a}\t{b}\n" for a, b, g, kind in rows)
    write(tmp_path / "sts_dev.tsv", f"score\tkind\tsentence1\tsentence2\n{lines}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paths, "MINI", tmp_path)
        pairs = data.mini_pairs("dev")
    columns = (pairs.sentence1, pairs.sentence2, pairs.scores, pairs.kinds)
    assert list(zip(*columns, strict=True)) == rows and len(pairs) == len(rows)


@own
@in_tmp_path
@given(
    rows=st.lists(st.tuples(clean, clean, score | st.none())).filter(
        lambda r: any(x[2] is not None for x in r)
    )
)
def test_sts_subset_skips_exactly_the_unscored_lines(tmp_path, rows):
    folder = tmp_path / "senteval/STS/STS12-en-test"
    write(folder / "STS.input.MSRpar.txt", "".join(f"{a}\t{b}\n" for a, b, _ in rows))
    write(
        folder / "STS.gs.MSRpar.txt", "".join("\n" if g is None else f"{g!r}\n" for *_, g in rows)
    )
    pairs = sets.sts_subset("STS12", "MSRpar", tmp_path)
    assert list(zip(pairs.sentence1, pairs.sentence2, pairs.scores, strict=True)) == [
        r for r in rows if r[2] is not None
    ]


@own
@in_tmp_path
@given(rows=st.lists(st.tuples(clean, clean, score), min_size=1), source=st.booleans())
def test_stsb_round_trip_without_quoting(tmp_path, rows, source):
    extra = "\tsource1\tsource2" if source else ""
    lines = "".join(f'main\tf\t2012\t1\t{g!r}\t"{a}\t{b}{extra}\n' for a, b, g in rows)
    write(tmp_path / "STS/STSBenchmark/sts-train.csv", lines)
    pairs = data.stsb("train", tmp_path)
    assert list(zip(pairs.sentence1, pairs.sentence2, pairs.scores, strict=True)) == [
        (f'"{a}', b, g) for a, b, g in rows
    ]


@own
def test_sick_reads_columns_by_name(tmp_path):
    header = "pair_ID\tsentence_B\tsentence_A\tentailment_judgment\trelatedness_score"
    write(tmp_path / "SICK/SICK_trial.txt", f"{header}\n7\tsecond\tfirst\tNEUTRAL\t3.5\n")
    pairs = sets.graded("SICK-R", "dev", tmp_path)
    assert [pairs.sentence1, pairs.sentence2, list(pairs.scores)] == [["first"], ["second"], [3.5]]


@own
def test_cnsd(tmp_path):
    write(tmp_path / "chinese/cnsd/cnsd-sts-dev.txt", "2012test-0000||一个男人。||一个女人。||4\n")
    pairs = sets.graded("CNSD", "dev", tmp_path)
    assert (pairs.sentence1, pairs.sentence2, list(pairs.scores)) == (
        ["一个男人。"],
        ["一个女人。"],
        [4.0],
    )


HEADER = "sentence_A\tsentence_B\trelatedness_score\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("g\tf\ty\ti\t3\ta\tb\ng\tf\ty\ti\t3\ta\n", "line 2: 6 fields where 7 or 9"),
        ("g\tf\ty\ti\tnan\ta\tb\n", "line 1: 'nan' is no similarity"),
        ("g\tf\ty\ti\t5.1\ta\tb\n", "line 1: '5.1' is no similarity"),
        ("g\tf\ty\ti\t3\ta\tb\ng\tf\ty\ti\t3\ta\t \n", "line 2: a sentence is empty"),
    ],
)
def test_malformed_pairs_name_file_and_line(tmp_path, content, message):
    write(tmp_path / "STS/STSBenchmark/sts-dev.csv", content)
    with pytest.raises(ValueError, match=f"sts-dev.csv, {message}"):
        data.stsb("dev", tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("sentence_A\tsentence_B\n", "line 1: expected exactly one column 'relatedness_score'"),
        (HEADER + "a\tb\n", "line 2: 2 fields where 3"),
    ],
)
def test_a_missing_column_or_cell_is_named(tmp_path, content, message):
    write(tmp_path / "SICK/SICK_trial.txt", content)
    with pytest.raises(ValueError, match=f"SICK_trial.txt, {message}"):
        sets.graded("SICK-R", "dev", tmp_path)


@pytest.mark.parametrize(
    ("gold", "message"),
    [
        ("1\n7\n", r"gs\.FNWN\.txt, line 2: '7' is no similarity"),
        ("1\n", r"input\.FNWN\.txt: 2 lines, but STS\.gs\.FNWN\.txt has 1"),
    ],
)
def test_malformed_sts_names_file_and_line(tmp_path, gold, message):
    write(tmp_path / "STS/STS13-en-test/STS.input.FNWN.txt", "a\tb\na\tb\n")
    write(tmp_path / "STS/STS13-en-test/STS.gs.FNWN.txt", gold)
    with pytest.raises(ValueError, match=message):
        sets.sts_subset("STS13", "FNWN", tmp_path)


THREE = "A dog runs.\nThe café is closed.\nIt snows.\n"
DAMAGED = {
    "sts-dev.csv": (
        "g\tf\ty\ti\t3\tA café\tb\n" * 3,
        partial(readers.graded_file, name="a set", form="STS-B"),
    ),
    "SICK_trial.txt": (
        HEADER + "A café\tb\t3\n" * 3,
        partial(readers.graded_file, name="a set", form="SICK-R"),
    ),
    "sentiment-dev": ("A café\t1\n" * 3, partial(readers.labelled_file, task="SST2")),
    "text.txt": (THREE, data.corpus),
    "text.txt.gz": (gzip.compress(THREE.encode(), mtime=0), data.corpus),
    "text.txt.xz": (lzma.compress(THREE.encode()), data.corpus),
}


@in_tmp_path
@given(
    st.sampled_from(sorted(DAMAGED)), st.integers(0, 99), st.integers(0, 9), st.binary(max_size=9)
)
def test_a_damaged_file_is_read_or_refused_by_its_name(tmp_path, name, place, lost, new):
    content, read = DAMAGED[name]
    whole = content if isinstance(content, bytes) else content.encode()
    path = write(tmp_path / name, whole[:place] + new + whole[place + lost :])
    try:
        read(path)
    except (ValueError, OSError) as error:
        assert name in str(error)


def test_the_sizes_of_the_sets_add_up_to_the_published_ones():
    scored = {task: sum(n for _, n in sets.values()) for task, sets in data.STS_SUBSETS.items()}
    assert scored == {"STS12": 3108, "STS13": 1500, "STS14": 3750, "STS15": 3000, "STS16": 1186}
    pairs = sum(n for sets in data.STS_SUBSETS.values() for n, _ in sets.values())
    pairs += sum(n for name, n in sets.SIZES.items() if name.startswith(("STS-B", "SICK-R")))
    assert 2 * pairs == 89_192  # ConSERT, Table 1


CUT = {  # half of a published set, ended at a line boundary
    "STS-B dev": ("STS/STSBenchmark/sts-dev.csv", "g\tf\ty\ti\t3\ta\tb\n" * 750, 750, 1500),
    "TREC train": ("TREC/train_5500.label", "NUM:x a ?\n" * 2726, 2726, 5452),
    "wiki1m": (data.WIKI1M, "A sentence.\n" * 500, 500, 1000000),
}


def read_set(name: str, folder: Path):
    task, _, split = name.partition(" ")
    if name == "wiki1m":
        return data.corpus(name, folder)
    if task in data.TRANSFER_TASKS:
        return data.transfer_task(task, folder)
    return sets.graded(task, split, folder)


@pytest.mark.parametrize(("name", "case"), CUT.items(), ids=CUT)
def test_a_part_of_a_published_set_is_refused(tmp_path, name, case):
    relative, content, found, expected = case
    path = write(tmp_path / relative, content)
    write(tmp_path / "TREC/TREC_10.label", "NUM:x a ?\n" * 500)
    with pytest.raises(
        ValueError, match=rf"{path.name}: {found:,} where {name} has {expected:,}.*'own-sets'"
    ):
        read_set(name, tmp_path)
    (tmp_path / sets.OWN_SETS).touch()
    read_set(name, tmp_path)


@own
@pytest.mark.parametrize(
    ("relative", "content", "read"),
    [
        ("STS/STSBenchmark/sts-dev.csv", "", lambda d: data.stsb("dev", d)),
        ("MR/rt-polarity.pos", "", lambda d: data.transfer_task("MR", d)),
        (data.WIKI1M, "\n\n", lambda d: data.corpus("wiki1m", d)),
    ],
)
def test_an_empty_set_is_refused(tmp_path, relative, content, read):
    write(tmp_path / "MR/rt-polarity.neg", "a\n")
    path = write(tmp_path / relative, content)
    with pytest.raises(ValueError, match=rf"{path.name}: 0 "):
        read(tmp_path)


def test_unknown_split(tmp_path):
    with pytest.raises(ValueError, match="split must be one of train, dev, test, got 'validation'"):
        data.stsb("validation", tmp_path)


# --- transfer tasks


@own
@pytest.mark.parametrize("name", BINARY)
def test_binary_transfer_tasks(tmp_path, name):
    one, zero = sets.TRANSFER_FILES[name].values()
    write(tmp_path / "senteval" / one, "good \n\n")
    write(tmp_path / "senteval" / zero, "caf\u00e9\n")
    assert data.transfer_task(name, tmp_path).splits == {"all": (["good", "", "café"], [1, 1, 0])}


@own
def test_transfer_encodings(tmp_path):
    write(tmp_path / "MR/rt-polarity.pos", "utf-8 café\n".encode())
    write(tmp_path / "MR/rt-polarity.neg", "latin-1 café\n".encode("latin-1"))
    assert data.transfer_task("MR", tmp_path).splits["all"][0] == ["utf-8 café", "latin-1 café"]


@own
def test_sst2_trec_mrpc(tmp_path):
    for split in sets.SPLITS:
        write(tmp_path / f"SST/binary/sentiment-{split}", f"{split} is fine \t1\nso so\t0\n")
    assert data.transfer_task("SST2", tmp_path).splits["dev"] == (["dev is fine", "so so"], [1, 0])
    questions = "NUM:dist How far ?\nABBR:exp What is a \xf1 ?\n".encode("latin-1")
    write(tmp_path / "TREC/train_5500.label", questions)
    write(tmp_path / "TREC/TREC_10.label", "HUM:ind Who ?\n")
    trec = data.transfer_task("TREC", tmp_path)
    assert trec.splits == {
        "train": (["How far ?", "What is a ñ ?"], [5, 0]),
        "test": (["Who ?"], [3]),
    }
    header = "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\r\n"
    for split in ("train", "test"):
        row = f'1\t7\t8\t"A {split}\tB "x" y\r\n'
        write(tmp_path / f"MRPC/msr_paraphrase_{split}.txt", header + row)
    mrpc = data.transfer_task("MRPC", tmp_path)
    assert mrpc.splits["test"] == (['"A test'], [1]) and mrpc.second["test"] == ['B "x" y']


MRPC = "Quality\t#1 String\t#2 String\n"


@own
@pytest.mark.parametrize(
    ("relative", "content", "message"),
    [
        ("SST/binary/sentiment-train", "fine\t1\nso so\t2\n", "line 2: label '2' is neither"),
        ("TREC/train_5500.label", "NUM:dist How ?\nWHAT:x Why ?\n", "line 2: no `CLASS:subclass"),
    ],
)
def test_malformed_transfer_names_file_and_line(tmp_path, relative, content, message):
    for other in ("SST/binary/sentiment-dev", "SST/binary/sentiment-test"):
        write(tmp_path / other, "a\t1\n")
    write(tmp_path / "TREC/TREC_10.label", "HUM:ind Who ?\n")
    write(tmp_path / relative, content)
    task = {"SST": "SST2", "TREC": "TREC"}[relative.split("/")[0]]
    with pytest.raises(ValueError, match=f"{Path(relative).name}, {message}"):
        data.transfer_task(task, tmp_path)


# --- where files are, corpora


@own
def test_environment_comes_before_the_project(tmp_path, monkeypatch):
    write(tmp_path / "env/STS/STSBenchmark/sts-dev.csv", "g\tf\ty\ti\t3\tenv\tb\n")
    write(tmp_path / "project/STS/STSBenchmark/sts-dev.csv", "g\tf\ty\ti\t3\tproject\tb\n")
    monkeypatch.setattr(paths, "DATA", tmp_path / "project")
    assert data.stsb("dev").sentence1 == ["project"]
    monkeypatch.setenv("CSE_DATA", str(tmp_path / "env"))
    assert data.stsb("dev").sentence1 == ["env"]
    assert data.stsb("dev", tmp_path / "project").sentence1 == ["project"]


@pytest.mark.parametrize("read", [data.sts_tasks, lambda d: data.corpus("wiki1m", d)])
def test_missing_data_is_one_sentence_with_the_command(tmp_path, read, monkeypatch):
    with pytest.raises(FileNotFoundError) as caught:
        read(tmp_path)
    message = str(caught.value)
    assert (
        "is missing (looked for in" in message and str(tmp_path) in message and "\n" not in message
    )
    assert f"`python -m lib data fetch --target {tmp_path}`" in message
    monkeypatch.setattr(paths, "DATA", tmp_path)
    with pytest.raises(FileNotFoundError, match=r"`python -m lib data fetch` brings it.*CSE_DATA"):
        read(None)


def test_wikipedia_is_distinct_and_drops_fragments(tmp_path):
    texts = b"one two three\ntwo words\nall of them\n", b"all of them\nfour words and more\n"
    for name, text in zip(sets.CORPUS_FILES["wikipedia"], texts, strict=True):
        write(tmp_path / name, lzma.compress(text))
    expected = ["one two three", "all of them", "four words and more"]
    assert data.corpus("wikipedia", tmp_path) == expected


def test_no_corpus_stands_in_for_another_unasked(tmp_path):
    write(tmp_path / data.WIKI1M, "one two three\nfour five six\n")
    with pytest.raises(FileNotFoundError, match=r"wikipedia_en_2015\.txt\.xz is missing"):
        data.corpus("wikipedia", tmp_path)
    assert data.at_hand("wikipedia", tmp_path) == "wiki1m"
    for file in sets.CORPUS_FILES["wikipedia"]:
        write(tmp_path / file, lzma.compress(b"one two three\n"))
    assert data.at_hand("wikipedia", tmp_path) == "wikipedia"
    assert data.at_hand("wikipedia", tmp_path / "nothing") == "wikipedia"


def test_corpus_files_are_those_that_are_read(tmp_path):
    for task, subsets in data.STS_SUBSETS.items():
        for subset in subsets:
            write(tmp_path / f"STS/{task}-en-test/STS.input.{subset}.txt", "a\tb\n")
    for split in sets.SPLITS:
        write(tmp_path / f"STS/STSBenchmark/sts-{split}.csv", "g\tf\ty\ti\t3\ta\tb\n")
    for split, name in sets.GRADED_FILES["SICK-R"].items():
        write(tmp_path / name, HEADER + f"{split}\tb\t3\n")
    (tmp_path / sets.OWN_SETS).touch()
    files = data.corpus_files("sts_unlabelled", tmp_path)
    assert len(files) == len(set(files)) == 24 + 3 + 3
    assert len(data.corpus("sts_unlabelled", tmp_path)) == 2 * len(files)
    train = tmp_path / "STS/STSBenchmark/sts-train.csv"
    assert data.corpus_files("stsb_train", tmp_path) == [train]
    pairs = data.stsb("train", tmp_path)
    assert data.corpus("stsb_train", tmp_path) == [*pairs.sentence1, *pairs.sentence2]
    assert pairs.sentence1 != pairs.sentence2
    assert data.corpus_files(tmp_path / "SICK/SICK_train.txt") == [tmp_path / "SICK/SICK_train.txt"]


def test_a_file_that_belongs_to_a_corpus_is_drawn_like_it(tmp_path):
    lines = [f"sentence {i}" for i in range(60)]
    lines[7] = lines[30] = ""
    path = write(tmp_path / "a.txt", "\n".join(lines))
    other = write(tmp_path / "b.txt", "\n".join(line.upper() for line in lines))
    for n in (None, 58, 5):
        sentences = data.corpus(path, n=n)
        found = data.aligned_corpus(path, other, n=n)
        assert found == (sentences, [s.upper() for s in sentences])
    assert corpora.sample(58, 5, 3).tolist() == corpora.sample(58, 58, 3)[:5].tolist()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("A\nB\n\nD\n", r"b\.txt, line 2: a sentence here or in the corpus"),
        ("A\n\n\nD\n", r"b\.txt, line 3: a sentence here or in the corpus"),
    ],
)
def test_two_blanks_at_different_places_do_not_cancel(tmp_path, content, message):
    path = write(tmp_path / "a.txt", "a\n\nc\nd\n")
    with pytest.raises(ValueError, match=message):
        data.aligned_corpus(path, write(tmp_path / "b.txt", content))


def test_corpus_sample(tmp_path):
    lines = [f"sentence {i}" for i in range(200)]
    path = write(tmp_path / "a.txt", "\n".join(lines))
    assert data.corpus(path) == lines
    large, small = data.corpus(path, n=150, seed=3), data.corpus(path, n=20, seed=3)
    assert large[:20] == small and len(set(large)) == 150 and set(large) < set(lines)
    assert small != data.corpus(path, n=20, seed=4) and small != lines[:20]
    with pytest.raises(ValueError, match=r"n=201 sentences asked for, .* has 200"):
        data.corpus(path, n=201)


# --- check and fetch, on a tree of the true sizes


@pytest.fixture(scope="module")
def tree(tmp_path_factory) -> Path:
    """A folder in SentEval's layout with as many lines as the real one, all made up."""
    root, n = tmp_path_factory.mktemp("tree") / "downstream", fetch.EXPECTED
    for task, subsets in data.STS_SUBSETS.items():
        folder = root / f"STS/{task}-en-test"
        for subset, (pairs, scored) in subsets.items():
            write(folder / f"STS.input.{subset}.txt", "a\tb\n" * pairs)
            write(folder / f"STS.gs.{subset}.txt", "3\n" * scored + "\n" * (pairs - scored))
    for split in sets.SPLITS:
        lines = "g\tf\ty\ti\t3\ta\tb\n" * n[f"STS-B {split}"]
        write(root / f"STS/STSBenchmark/sts-{split}.csv", lines)
        write(
            root / sets.GRADED_FILES["SICK-R"][split], HEADER + "a\tb\t3\n" * n[f"SICK-R {split}"]
        )
        write(root / f"SST/binary/sentiment-{split}", "a\t1\n" * n[f"SST2 {split}"])
    for name in BINARY:
        one, zero = sets.TRANSFER_FILES[name].values()
        write(root / one, "a\n" * (n[name] - 5))
        write(root / zero, "b\n" * 5)
    write(root / "TREC/train_5500.label", "NUM:x a ?\n" * n["TREC train"])
    write(root / "TREC/TREC_10.label", "NUM:x a ?\n" * n["TREC test"])
    for split in ("train", "test"):
        rows = "1\ta\tb\n" * n[f"MRPC {split}"]
        write(root / f"MRPC/msr_paraphrase_{split}.txt", MRPC + rows)
    return root


@pytest.fixture(scope="module")
def hub(tree, tmp_path_factory) -> Path:
    """A folder with the two files of the hub's repository."""
    folder = tmp_path_factory.mktemp("hub")
    with tarfile.open(folder / fetch.TAR, "w") as tar:
        for child in sorted(tree.iterdir()):
            tar.add(child, arcname=f"./{child.name}")
        add(tar, "./STS/._STS12-en-test", b"resource fork")
    write(folder / data.WIKI1M, "A sentence.\n" * 1_000_000)
    return folder


def add(tar: tarfile.TarFile, name: str, content: bytes = b"x", **attributes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(content)
    for key, value in attributes.items():
        setattr(member, key, value)
    tar.addfile(member, io.BytesIO(content) if member.isfile() else None)


def left(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir())


def test_check_names_each_difference(tree, tmp_path):
    copy = shutil.copytree(tree, tmp_path / "copy")
    (copy / "SICK/SICK_trial.txt").unlink()
    write(copy / "TREC/TREC_10.label", "NUM:x a ?\n" * 499)
    write(copy / "SST/binary/sentiment-dev", "a\t1\nb\n")
    wrong = "\n".join(fetch.differences(fetch.check(copy)))
    assert "SICK-R dev: 500 expected, found absent" in wrong
    assert "sts_unlabelled: 89192 expected, found absent" in wrong
    assert "TREC_10.label: 499 where TREC test has 500" in wrong
    assert "sentiment-dev, line 2: 1 fields where 2" in wrong


def test_check_command(tree, tmp_path, capsys):
    assert cli(["data", "check", str(tree)]) == 0
    out = capsys.readouterr().out
    assert "3108 expected, found 3108\n" in out and "1000000 expected, found absent" in out
    assert cli(["data", "check", str(tmp_path)]) == 1
    assert cli(["data", "check", str(tmp_path / "nowhere")]) == 2
    assert "error: no folder" in capsys.readouterr().err


def test_fetch_unpacks_counts_and_keeps(hub, tmp_path):
    target = tmp_path / "t"
    assert fetch.fetch(target, hub) == [target / "senteval", target / data.WIKI1M]
    assert left(target) == ["senteval", data.WIKI1M]
    assert not list(target.rglob("._*"))
    assert fetch.differences(fetch.check(target)) == []
    fetch.fetch(target, tmp_path / "nothing is needed")


def test_fetch_finds_the_data_at_any_depth_of_a_compressed_archive(tree, tmp_path):
    with tarfile.open(tmp_path / fetch.TAR, "w:gz") as tar:
        tar.add(tree, arcname="SentEval/data/downstream")
    fetch.fetch(tmp_path / "t", tmp_path, names=(fetch.TAR,))
    assert (tmp_path / "t/senteval/STS/STS12-en-test").is_dir()


def test_fetch_refuses_what_is_not_expected(tree, tmp_path):
    write(tmp_path / data.WIKI1M, "A sentence.\n" * 999)
    with pytest.raises(ValueError, match=r"wiki1m: 1000000 expected, found .* 999 where"):
        fetch.fetch(tmp_path / "t", tmp_path, names=(data.WIKI1M,))
    with tarfile.open(tmp_path / fetch.TAR, "w") as tar:
        tar.add(tree / "STS", arcname="STS")
    with pytest.raises(ValueError, match="SICK-R train: 4500 expected, found absent"):
        fetch.fetch(tmp_path / "t", tmp_path, names=(fetch.TAR,))
    with tarfile.open(tmp_path / fetch.TAR, "w") as tar:
        add(tar, "readme.txt")
    with pytest.raises(ValueError, match="no archive of SentEval's data"):
        fetch.fetch(tmp_path / "t", tmp_path, names=(fetch.TAR,))
    for content in (b"not a tar", b"", lzma.compress(b"x" * 9999)[:40]):
        write(tmp_path / fetch.TAR, content)
        with pytest.raises(ValueError, match="cannot be unpacked"):
            fetch.fetch(tmp_path / "t", tmp_path, names=(fetch.TAR,))
    assert left(tmp_path / "t") == []


def test_fetch_refuses_a_member_that_would_lie_elsewhere(tree, tmp_path):
    with tarfile.open(tmp_path / fetch.TAR, "w") as tar:
        tar.add(tree, arcname=".")
        add(tar, "STS/../../evil")
    target = tmp_path / "a/b/target"
    with pytest.raises(ValueError, match="cannot be unpacked"):
        fetch.fetch(target, tmp_path, names=(fetch.TAR,))
    assert left(target) == [] and not list(tmp_path.rglob("evil*"))


def test_fetch_leaves_links_and_devices(tree, tmp_path):
    with tarfile.open(tmp_path / fetch.TAR, "w") as tar:
        tar.add(tree, arcname=".")
        add(tar, "STS/link", b"", type=tarfile.SYMTYPE, linkname="/etc")
        add(tar, "STS/device", b"", type=tarfile.CHRTYPE)
    (root,) = fetch.fetch(tmp_path / "target", tmp_path, names=(fetch.TAR,))
    assert left(root / "STS") == left(tree / "STS")


def test_fetch_asks_the_hub_for_the_right_file(hub, tmp_path, monkeypatch):
    import huggingface_hub

    asked = []

    def snapshot_download(repository, repo_type, allow_patterns, local_dir):
        asked.append((repository, repo_type, allow_patterns))
        write(Path(local_dir) / allow_patterns, (hub / allow_patterns).read_bytes())
        return str(local_dir)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    fetch.fetch(tmp_path, names=(data.WIKI1M,))
    assert asked == [("princeton-nlp/datasets-for-simcse", "dataset", "wiki1m_for_simcse.txt")]
    assert left(tmp_path) == [data.WIKI1M]


def test_fetch_without_a_network_is_one_sentence(tmp_path, monkeypatch, capsys):
    import huggingface_hub

    def refuse(*_, **__):
        raise RuntimeError("Name or service not known\nmore\nlines")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", refuse)
    assert cli(["data", "fetch", "--target", str(tmp_path)]) == 2
    err = capsys.readouterr().err
    assert "princeton-nlp/datasets-for-simcse cannot be downloaded: Name or service" in err
    assert "--source FOLDER" in err and err.count("\n") == 1


# --- the real data


@pytest.mark.real_data
class TestRealData:
    def test_counts(self):
        assert fetch.differences(fetch.check(REAL)) == []

    def test_same_pairs_as_pandas_reads(self):
        import pandas

        table = pandas.read_csv(REAL / "senteval/SICK/SICK_test_annotated.txt", sep="\t", quoting=3)
        pairs = sets.graded("SICK-R", "test", REAL)
        assert pairs.sentence1 == [s.strip() for s in table.sentence_A]
        assert np.array_equal(pairs.scores, table.relatedness_score)

    def test_transfer_labels(self):
        mrpc, trec = data.transfer_task("MRPC", REAL), data.transfer_task("TREC", REAL)
        assert sum(mrpc.splits["test"][1]) == 1147 and len(mrpc.second["test"]) == 1725
        assert np.bincount(trec.splits["test"][1]).tolist() == [9, 138, 94, 65, 81, 113]
        assert not mrpc.splits["train"][0][0].startswith("\ufeff")

    def test_the_head_of_wiki1m_is_the_same_text_from_either_file(self, tmp_path):
        head = data.corpus("wiki_slice", REAL)
        whole = tmp_path / "wiki1m_for_simcse.txt"
        whole.write_text("\n".join([*head, "One more sentence."]) + "\n", encoding="utf-8")
        assert data.corpus("wiki1m_head", REAL) == data.corpus("wiki1m_head", tmp_path) == head
        whole.write_text("\n".join(head[:-1]), encoding="utf-8")
        with pytest.raises(ValueError, match="11,547 where wiki1m_head has 11,548"):
            data.corpus("wiki1m_head", tmp_path)
