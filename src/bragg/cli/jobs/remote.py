"""Files of object stores and other file systems that fsspec knows, as local ones for a while."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from bragg.cli.console import ADDRESS_MARK
from bragg.errors import BadFile, UsageError
from bragg.formats.job.directory import INDEX, is_job
from bragg.formats.job.foreign import SUFFIXES


@contextmanager
def local_files(words: Sequence[str]) -> Iterator[list[Path]]:
    """Paths of what was named; what has an address such as `s3://bucket/train.job` is copied until the end.

    Of a directory its index and the profiles of ranks are copied, of one without any the files of other profilers.

    Raises:
        UsageError: fsspec, or its part for this kind of address, is not installed.
        BadFile: There is no such file, or it cannot be read.
    """
    with ExitStack() as stack:
        yield [_copied(word, stack) if ADDRESS_MARK in word else Path(word) for word in words]


def _copied(address: str, stack: ExitStack) -> Path:
    folder = Path(stack.enter_context(TemporaryDirectory(prefix="bragg-")), PurePosixPath(address).name or "job")
    folder.mkdir()
    try:
        from fsspec.core import url_to_fs

        system, place = url_to_fs(address)
        found = [place] if system.isfile(place) else _of_job(system.ls(place, detail=False))
        names = [folder / PurePosixPath(name).name for name in found]
        if found:
            system.get(found, [str(name) for name in names])
    except ImportError as error:
        raise UsageError(f"{address} needs fsspec: {error}", hint="pip install 'bragg[remote]'") from error
    except Exception as error:  # Clients of stores raise their own, such as that of missing credentials.
        raise BadFile(f"cannot read {address}: {error}", hint="Check the address") from error
    if not found or (found != [place] and not is_job(folder)):
        raise BadFile(f"there is no profile of a rank in {address}", hint="Give the directory of a job")
    return names[0] if found == [place] else folder


def _of_job(names: Sequence[str]) -> list[str]:
    """The files that a job is made of."""
    own = [name for name in names if PurePosixPath(name).match("rank[0-9]*.bragg")]
    if own:
        return sorted([*own, *(name for name in names if PurePosixPath(name).name == INDEX)])
    return sorted(name for name in names if name.endswith(SUFFIXES))
