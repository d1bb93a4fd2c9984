"""Find the codes in a text: Xids, errors of CUDA, NVML and NCCL by number or name, exit codes of docker run."""

import re
from collections.abc import Iterator

from gpuready.messages.code_names import CUDA_TEXTS, NCCL, cuda_names, nvml_names

#: DCGM's metric of the last Xid, as dcgm-exporter labels it.
_XID_METRIC = re.compile(r"\bdcgm_fi_dev_xid_errors\{[^}]{0,300}\berr_code=\"([1-9][0-9]{0,3})\"")
_XID = re.compile(r"\bxid\b(?: \((?:pci:)?[0-9a-f:.]{3,20}\))?(?: error| errors)?[ :=#]{1,3}([0-9]{1,4})\b")
#: The reason that the node monitoring agent of EKS gives: NvidiaXID79Error, NvidiaXID13Warning.
_XID_REASON = re.compile(r"\bnvidiaxid([1-9][0-9]{0,2})(?:error|warning)\b")
_CUDA_NAME = re.compile(r"\bcudaerror([a-z]{4,40})\b|\bcuda_error_([a-z_]{4,50})\b")
_CUDA_NUMBER = re.compile(
    r"(?:\bcuda(?: runtime| driver| initialization)?:? (?:error|failure)|\bcudaerror(?:_t)?|\bcuresult"
    r"|\bcuinit(?:\(0\))?(?:: unknown error| failed with| failed:?| returned| =| ->)?)(?: code)?(?: is)?"
    r"[ :=(#]{1,3}([0-9]{1,3})\b"
)
#: CUDA error (file.cu:12): text; CUDA failure 1 'text'; Triton Error [CUDA]: text; cudaMalloc failed: text.
_CUDA_TEXT = re.compile(
    r"(?:\bcuda(?: driver| runtime| kernel| api)?[ _]?(?:error|failure|exception)|\btriton error \[cuda\]"
    r"|\bcu(?:da|mem|ctx|stream|launch|device|event|module|func|graph|ipc|library)[a-z0-9_]{0,40}(?:\([^()]{0,80}\))? "
    r"(?:failed|returned|error))(?: with| in)?(?:(?: at)? [(']?[^ '\"]{1,120}:[0-9]{1,6}[)']?| \(?[0-9]{1,3}\)?)?"
    r"[ :='\"(]{1,4}"
    rf"({'|'.join(map(re.escape, CUDA_TEXTS))})(?![a-z])"
)
#: Without a word of CUDA's, only numbers that mean nothing else.
_BARE = re.compile(r"\berror:? (80[0-4])\b(?!\.[0-9])")
_ALONE = re.compile(r"(?:error )?(3[45]|36|46|100|101|20[09]|214|22[0-2]|304|7[01][0-9]|80[0-9]|999)")
_NVML_NAME = re.compile(r"\b(?:(?:nvml_)?error|nvmlerror)_([a-z_]{4,40})\b")
_NVML_NUMBER = re.compile(
    r"\bnvml[a-z0-9_ ]{0,40} (?:err(?:or)?(?: code)?|failed|failure) ?[:=(]{0,2} ?([0-9]{1,3})\b(?! [a-z])"
)
#: What nvmlErrorString says, where nvidia-container-cli, or an exporter in Go ("nvml: Not Supported"), passes it on.
_NVML_TEXTS = {
    "invalid argument": 2, "not supported": 3, "insufficient permissions": 4, "not found": 6, "timeout": 10,
    "function not found": 13, "gpu is lost": 15, "in use by another client": 19, "insufficient resources": 23,
    "unknown error": 999,
}  # fmt: skip
_NVML_TEXT = re.compile(rf"\bnvml(?: error: (?:{'|'.join(_NVML_TEXTS)})|: (?:not supported|gpu is lost))(?![a-z])")
_NVML_NEAR = ("nvml", "nvidia", "gpu", "device handle")
_NCCL_NAME = re.compile(r"\b(nccl[a-z]{6,20})\b")
_NCCL_NUMBER = re.compile(r"\bnccl (?:error|result|failure)(?: code)?[ :=]{1,2}([1-7])\b")
_EXIT = re.compile(
    r"(?<!hook #\d: )(?<!did not terminate successfully: )"
    r"\bexit(?:ed)?(?: with)?(?:(?: ?code| status|ed)?)(?::| =| is)? ?\(?(12[567]|13[79])\b"
)
_ENGINES = ("docker", "podman", "container", "nvidia")
_LIMIT = 64
#: The longest rest of a line of the kernel log that is read after an Xid, in characters.
_LINE = 200


def find(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield each code in a normal text (see :mod:`gpuready.messages.find`) once: the code, its start, its end."""
    seen: set[str] = set()
    for code, start, end in _all(text):
        if code not in seen and len(seen) < _LIMIT:
            seen.add(code)
            yield code, start, end


def _all(text: str) -> Iterator[tuple[str, int, int]]:
    for match in _XID.finditer(text) if "xid" in text else ():
        yield f"xid {_variant(text, match)}", match.start(), match.end()
    for match in _XID_METRIC.finditer(text) if "err_code" in text else ():
        yield f"xid {match[1]}", match.start(), match.end()
    for match in _XID_REASON.finditer(text) if "nvidiaxid" in text else ():
        yield f"xid {match[1]}", match.start(), match.end()
    if "cuda" in text:
        names = cuda_names()
        for match in _CUDA_NAME.finditer(text):
            name = match[1] or match[2]
            if name in names:
                yield f"cuda {names[name]}", match.start(), match.end()
        for match in _CUDA_TEXT.finditer(text):
            yield f"cuda {CUDA_TEXTS[match[1]]}", match.start(), match.end()
    yield from _nvml_of(text)
    for pattern, word in ((_CUDA_NUMBER, "cu"), (_BARE, "error")):
        for match in pattern.finditer(text) if word in text else ():
            if int(match[1]):
                yield f"cuda {match[1]}", match.start(), match.end()
    if alone := _ALONE.fullmatch(text):
        yield f"cuda {alone[1]}", 0, len(text)
    if "nccl" in text:
        results = {name.lower(): number for number, name in enumerate(NCCL, 1)}
        for match in _NCCL_NAME.finditer(text):
            if match[1] in results:
                yield f"nccl {results[match[1]]}", match.start(), match.end()
        for match in _NCCL_NUMBER.finditer(text):
            yield f"nccl {match[1]}", match.start(), match.end()
    engine = any(word in text for word in _ENGINES)
    for match in _EXIT.finditer(text) if engine or len(text) < 40 else ():
        # Every program can be killed or crash; 125 to 127 are Docker's own.
        if engine or match[1].startswith("12") or not match.start():
            yield f"exit {match[1]}", match.start(), match.end()


def _nvml_of(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield the errors of NVML; without its prefix a name counts only near a word that is about GPUs."""
    near = any(word in text for word in _NVML_NEAR)
    for match in _NVML_NAME.finditer(text) if "error_" in text and near else ():
        number = nvml_names().get(match[1].replace("_", ""))
        if number is not None:
            yield f"nvml {number}", match.start(), match.end()
    for match in _NVML_TEXT.finditer(text) if "nvml" in text else ():
        yield f"nvml {_NVML_TEXTS[match[0].partition(': ')[2]]}", match.start(), match.end()
    known = set(nvml_names().values())
    for match in _NVML_NUMBER.finditer(text) if "nvml" in text else ():
        if int(match[1]) in known:
            yield f"nvml {int(match[1])}", match.start(), match.end()


def _variant(text: str, xid: re.Match[str]) -> str:
    """Return the number of an Xid, and after a blank the name of its action if the rest of its line chooses it."""
    from gpuready.gpu.thresholds import NVLINK5, action_name

    number, rest = int(xid[1]), text[xid.end() : xid.end() + _LINE].partition("xid")[0]
    if number not in NVLINK5 or (name := action_name(number, rest)) == action_name(number):
        return xid[1]
    return f"{number} {name}"
