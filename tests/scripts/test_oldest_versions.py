"""The oldest libraries that the project admits, as pip takes them."""

import pytest
from oldest_versions import oldest_versions


def project(*dependencies: str) -> dict[str, object]:
    extras = {"serve": ["lxml>=6"], "dev": ["pytest>=8"]}
    return {"dependencies": list(dependencies), "optional-dependencies": extras}


def test_a_lower_bound_becomes_a_version() -> None:
    found = oldest_versions(project("torch>=2.11", "spacy>=3.8.2,<4", "prometheus-client>=0.20"))
    assert found == ["spacy==3.8.2", "prometheus-client==0.20", "lxml==6"]


def test_a_library_without_a_bound_is_named() -> None:
    with pytest.raises(ValueError, match=r"^numpy: no lower bound; write name>=version$"):
        oldest_versions(project("numpy"))
