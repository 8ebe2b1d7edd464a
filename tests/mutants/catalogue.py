"""All mutants: mistakes that the tests have to notice.

Each is chosen by reading the code: it changes what a user sees, a person could make it, and the product still starts.
"""

from __future__ import annotations

from tests.mutants.formats import FORMATS
from tests.mutants.locking import LOCKING
from tests.mutants.merging import MERGING
from tests.mutants.metadata import METADATA
from tests.mutants.mutant import Mutant
from tests.mutants.reading import READING
from tests.mutants.services import SERVICES
from tests.mutants.spark import SPARK
from tests.mutants.timeline import TIMELINE
from tests.mutants.writing import WRITING

__all__ = ["MUTANTS", "Mutant"]

MUTANTS: tuple[Mutant, ...] = (
    *MERGING,
    *WRITING,
    *TIMELINE,
    *SERVICES,
    *METADATA,
    *READING,
    *LOCKING,
    *SPARK,
    *FORMATS,
)
