"""Other tools' files in and out: one module a format or family, what they share, and the two functions that go through
all of them. Nothing is graded here, and what a format does not hold is left out, not guessed.
"""

from rag_judge.formats.exporting import WRITERS, Exported, export_run
from rag_judge.formats.importing import OTHER_NAMES, READERS, Imported, import_files

__all__ = ["OTHER_NAMES", "READERS", "WRITERS", "Exported", "Imported", "export_run", "import_files"]
