"""Plain text as rows. Enters: a text file. Leaves: one row for each line that is not blank, with the column `text`."""

from bertie.data.rows.file_bytes import FileBytes
from bertie.data.rows.records import Records
from bertie.data.rows.rows import Row, Rows


class LineRows(Rows):
    columns = ("text",)

    def __init__(self, source: FileBytes):
        self.name, self.notices = source.name, []
        self._records = Records(source)
        if self._records.num_blank:
            self.notices.append(f"{self.name}: {self._records.num_blank:,} blank lines are no rows")

    @property
    def num_rows(self) -> int:
        return len(self._records)

    def _read(self, number: int) -> Row:
        return Row({"text": self._records.first_line(number)}, self._records.where(number))
