"""steelyard validate: check files and say everything that is wrong with them."""


def validate() -> None: ...
