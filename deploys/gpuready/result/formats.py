"""The names of the output formats."""

FORMATS = ("human", "json", "jsonl", "junit", "html", "github", "gitlab")
#: Of tests between hosts: a table, and a picture of the matrices.
MATRIX_FORMATS = (*FORMATS, "csv", "svg")
#: Of verbs that describe hosts and judge nothing.
LISTING_FORMATS = ("human", "json", "jsonl")
#: Of NCCL's settings: the last ones print the variables alone.
VARIABLE_FORMATS = ("env", "conf", "docker", "kubernetes")
