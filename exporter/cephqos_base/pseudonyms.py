"""Names of pseudonyms, as redaction writes them."""

import hashlib
import hmac


def pseudonym(key: bytes, kind: str, value: str) -> str:
    """Such as `pool-0f3a91c2de`: the same for the same value and key. Without the key the value
    cannot be found, even by trying."""
    digest = hmac.new(key, value.encode(errors="replace"), hashlib.sha256)
    return f"{kind}-{digest.hexdigest()[:10]}"
