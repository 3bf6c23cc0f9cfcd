"""Keys on disk: who may read them, which signs, and rotation."""

from __future__ import annotations

import stat

import pytest

from memsvc.errors import ConfigInvalid
from memsvc.service.auth.keys import SigningKeys


@pytest.fixture
def directory(tmp_path):
    return tmp_path / "data" / "keys"


def opened(directory, now_us=1000):
    return SigningKeys(directory, clock_us=lambda: now_us)


def test_the_first_key_is_made_when_it_is_needed_and_kept(directory):
    keys = opened(directory)
    assert keys.kids == ()
    assert not directory.exists()
    kid, key = keys.signer()
    assert keys.signer() == (kid, key)
    (file,) = directory.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    again = opened(directory)
    assert again.signer()[0] == kid
    again.verifier(kid).verify(key.sign(b"x"), b"x")
    assert again.verifier("other") is None


def test_rotation_keeps_what_is_needed(directory):
    keys = opened(directory)
    first, _ = keys.signer()
    second, dropped = keys.rotate({first})
    assert (dropped, keys.signer()[0]) == ([], second)
    assert second > first, "the clock stood still, and the newest must still be the last by name"
    third, dropped = keys.rotate({second})
    assert dropped == [first]
    assert keys.verifier(first) is None
    assert keys.kids == opened(directory).kids == (second, third)
    assert opened(directory).signer()[0] == third


def test_a_clock_that_steps_back_does_not_bring_an_old_key_back(directory):
    first, _ = opened(directory, 10**15).signer()
    assert opened(directory, 5).rotate({first})[0] > first


def test_a_key_that_others_may_read_is_refused(directory):
    opened(directory).signer()
    (file,) = directory.iterdir()
    file.chmod(0o640)
    with pytest.raises(ConfigInvalid, match="chmod 600"):
        opened(directory)


@pytest.mark.parametrize("content", [b"", b"junk", b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"])
def test_a_file_that_is_no_key_is_refused_without_its_content(directory, content):
    directory.mkdir(parents=True)
    (directory / "0000000000000001-00000000.pem").write_bytes(content)
    (directory / "0000000000000001-00000000.pem").chmod(0o600)
    with pytest.raises(ConfigInvalid, match="no key of this service") as caught:
        opened(directory)
    assert "AAAA" not in str(caught.value)


def test_a_directory_that_can_not_be_written_is_said(tmp_path):
    (tmp_path / "keys").write_text("a file")
    with pytest.raises(ConfigInvalid, match="can't be written"):
        opened(tmp_path / "keys").signer()
