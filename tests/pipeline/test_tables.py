"""Run directories as Spark reads them: every table has columns.  Without Spark."""

from __future__ import annotations

import pytest

from kcluster.pipeline.tables import ddl
from kcluster.runs.record import TABLES


@pytest.mark.parametrize("field", TABLES)
def test_tables__each_row_type_has_columns(field: str) -> None:
    assert ddl(TABLES[field].row)


def test_tables__a_pair_of_a_topic_and_a_partition_is_read_as_text() -> None:
    columns = ddl(TABLES["groups"].row)
    assert "`assignment`: array<array<string>>" in columns
    assert "`epochs` array<array<bigint>>" in ddl(TABLES["epochs"].row)
