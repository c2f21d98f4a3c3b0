"""The figures that Yu and Allan 2020 print: Tables 1, 2 and 3. Figure 1 comes without numbers."""

from __future__ import annotations

from tf_smoothclir.papers.laboratory.tables import Table

NOT_COMPARABLE = "paper, CLEF 2000-2003, fastText's aligned vectors: not comparable"
_LANGUAGES = ("EN→NL", "EN→IT", "EN→FI", "EN→ES")
_TABLE_1 = (
    ("EN", "phone 0.818, telephones 0.761, Telephone 0.720, landline 0.694, rotary-dial 0.669"),
    ("ES", "telefónicos 0.535, teléfono 0.522, telefónica 0.522, telefonia 0.520, teléfono 0.520"),
)
_TABLE_2 = (
    ("queries", "160", "160", "90", "160"),
    ("documents", "42,734", "40,320", "16,351", "46,540"),
    ("relevant documents per query", "29.1", "19.5", "10.9", "49.5"),
    ("labeled documents per query", "375.4", "338.3", "282.6", "372.7"),
)
# MAP.
TABLE_3 = {
    "BWE-Agg-Add": (0.237, 0.173, 0.170, 0.297),
    "BWE-Agg-IDF": (0.246, 0.178, 0.180, 0.298),
    "TbT-QT-BM25": (0.240, 0.231, 0.122, 0.341),
    "TbT-QT-QL": (0.297, 0.268, 0.126, 0.387),
    "MP-Cosine": (0.348, 0.331, 0.254, 0.423),
    "MP-Gaussian": (0.322, 0.319, 0.203, 0.405),
    "MP-Exact": (0.327, 0.295, 0.202, 0.415),
    "MP-Hybrid": (0.343, 0.326, 0.243, 0.427),
    "MP-TbT-QT": (0.327, 0.300, 0.195, 0.409),
    "DRMM-Cosine": (0.374, 0.352, 0.304, 0.462),
    "DRMM-TbT-QT": (0.345, 0.324, 0.193, 0.450),
    "KNRM-Cosine": (0.368, 0.313, 0.286, 0.423),
    "KNRM-TbT-QT": (0.329, 0.288, 0.200, 0.405),
}


def paper_tables(experiment: str) -> list[Table]:
    """What the paper prints for an experiment, as tables; nothing for its figure."""
    if experiment == "yu2020_table1":
        columns = ("language", "five words nearest to telephone, with their cosines")
        return [Table(NOT_COMPARABLE, columns, _TABLE_1)]
    if experiment == "yu2020_table2":
        return [Table(NOT_COMPARABLE, ("", *_LANGUAGES), _TABLE_2)]
    rows = tuple((name, *map("{:.3f}".format, values)) for name, values in TABLE_3.items())
    return [Table(f"MAP, {NOT_COMPARABLE}", ("system", *_LANGUAGES), rows)]
