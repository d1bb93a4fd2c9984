"""The names of the output formats."""

FORMATS = ("human", "json", "jsonl", "junit", "html", "github", "gitlab")
#: Of tests between hosts: a table, and a picture of the matrices.
MATRIX_FORMATS = (*FORMATS, "csv", "svg")
#: Of verify: what can be signed.
EVIDENCE_FORMATS = (*FORMATS, "intoto")
#: Of verbs that describe hosts and judge nothing.
LISTING_FORMATS = ("human", "json", "jsonl")
#: Of NCCL's settings: the last ones print the variables alone.
VARIABLE_FORMATS = ("env", "conf", "docker", "kubernetes")
