"""What a change query reads: a unit for each file group that a commit changed."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from hudi_fast.view.file_names import BaseFile, LogFile
from hudi_fast.view.slices import FileSlice

__all__ = ["CdcCase", "CdcUnit"]


class CdcCase(Enum):
    """How the changes of a unit are found (``HoodieCDCInferenceCase``, Hudi 1.2.0).

    Attributes:
        AS_IS: they are in change logs.
        BASE_FILE_INSERT: all rows of a base file are new.
        BASE_FILE_DELETE: all rows of the base file before are gone.
        LOG_FILE: the records of a log file, replayed on the slice that it was written on.
        REPLACE_COMMIT: all rows of a file group that was replaced are gone.
    """

    AS_IS = "as_is"
    BASE_FILE_INSERT = "base_file_insert"
    BASE_FILE_DELETE = "base_file_delete"
    LOG_FILE = "log_file"
    REPLACE_COMMIT = "replace_commit"


@dataclass(frozen=True, slots=True)
class CdcUnit:
    """What one commit did to one file group.

    Attributes:
        case: how the changes are found.
        instant: requested time of the commit.
        partition: partition path.
        file_id: the file group.
        logs: AS_IS: the change logs; LOG_FILE: the log file; else none.
        before: the slice that the commit changed, where rows of it are looked at.
        after: the base file that the commit wrote, where rows of it are looked at.
    """

    case: CdcCase
    instant: str
    partition: str
    file_id: str
    logs: tuple[LogFile, ...] = ()
    before: FileSlice | None = None
    after: BaseFile | None = None

    @property
    def weight(self) -> int:
        """Bytes of the files that are read."""
        files: list[BaseFile | LogFile] = list(self.logs)
        if self.after is not None:
            files.append(self.after)
        if self.before is not None:
            files += self.before.log_files
            if self.before.base_file is not None:
                files.append(self.before.base_file)
        return sum(file.size for file in files)
