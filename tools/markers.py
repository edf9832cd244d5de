"""What code writes into a page that is written by hand: the text between two markers."""

from pathlib import Path

from lib.data.files import write_text


def fill(path: Path, marker: str, content: str) -> None:
    """Replace what stands between `<!-- marker: begin -->` and `<!-- marker: end -->` in a text
    file.

    Raises:
        ValueError: the markers are not there.
    """
    begin, end = f"<!-- {marker}: begin -->", f"<!-- {marker}: end -->"
    text = path.read_text(encoding="utf-8")
    if begin not in text or end not in text:
        raise ValueError(f"{path} has no lines {begin} and {end}")
    before, rest = text.split(begin, 1)
    write_text(path, f"{before}{begin}\n{content}\n{end}{rest.split(end, 1)[1]}")
