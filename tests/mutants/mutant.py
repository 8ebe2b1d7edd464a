"""A mutant: one small mistake, as a piece of the product's text and the text that takes its place."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Mutant"]


@dataclass(frozen=True, slots=True)
class Mutant:
    """One mistake that a person could make.

    Attributes:
        name: the area, then the mistake, in kebab case; no other mutant has it.
        file: path in the checkout.
        before: text that occurs once in the file.
        after: text of the mistake.
        harm: what a user would see, in one sentence.
        near: files and folders of the tests that should notice it; they are asked first.
    """

    name: str
    file: str
    before: str
    after: str
    harm: str
    near: tuple[str, ...]

    @property
    def area(self) -> str:
        """The first word of the name."""
        return self.name.partition("-")[0]

    def applied(self, text: str) -> str:
        """The text of the file with the mistake.

        Raises:
            ValueError: the text does not hold ``before`` exactly once.
        """
        found = text.count(self.before)
        if found != 1:
            raise ValueError(f"{self.name}: {self.file} holds the text to replace {found} times: {self.before!r}")
        return text.replace(self.before, self.after)
