"""Real processes: the first token of a server that takes calls with tokens only, TLS, and the commands about tokens."""

from __future__ import annotations

import datetime as dt
import ipaddress
import json
import os
import subprocess
import sys

import grpc
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from memsvc.demo import ServerProcess
from memsvc.v1 import memory_pb2 as pb
from memsvc.v1 import memory_service_pb2 as spb
from memsvc.v1 import memory_service_pb2_grpc as rpc


class Authority:
    """A throw-away CA whose certificates are good for localhost."""

    def __init__(self):
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.certificate = self._signed("memsvc test CA", self.key.public_key(), is_ca=True)
        self.pem = self.certificate.public_bytes(serialization.Encoding.PEM)

    def _signed(self, name, public_key, is_ca=False):
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        issuer = subject if is_ca else self.certificate.subject
        names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        now = dt.datetime.now(dt.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(issuer)
            .public_key(public_key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - dt.timedelta(days=1))
            .not_valid_after(now + dt.timedelta(days=2))
            .add_extension(x509.BasicConstraints(ca=is_ca, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
        )
        return builder.sign(self.key, hashes.SHA256())

    def pair(self, name):
        """Certificate and key as PEM."""
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = self._signed(name, key.public_key())
        encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
        pem = key.private_bytes(encoding, form, serialization.NoEncryption())
        return certificate.public_bytes(encoding), pem


def memsvc(*arguments, **environment):
    clean = {name: value for name, value in os.environ.items() if not name.startswith("MEMSVC_")}
    return subprocess.run(
        [sys.executable, "-m", "memsvc", *map(str, arguments)],
        capture_output=True,
        text=True,
        env={**clean, "COLUMNS": "80", **{f"MEMSVC_{name}": str(value) for name, value in environment.items()}},
        check=False,
    )


def created(*arguments, **environment):
    done = memsvc("token", "create", *arguments, "-o", "json", **environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_from_the_first_token_to_its_revocation(tmp_path):
    data = tmp_path / "data"
    first = created("--data-dir", data, "--name", "ops", "--tenant", "*", "--admin", "--user", "*")
    assert (data / "keys").stat().st_mode & 0o777 == 0o700
    secret = tmp_path / "ops.token"
    secret.write_text(first["secret"] + "\n")
    with ServerProcess(data, "--require-token") as server:
        at = {"SERVER": server.address}
        refused = memsvc("remember", "Tea at four.", "-u", "u", **at)
        assert refused.returncode == 1
        assert "TOKEN_MISSING" in refused.stderr
        locked = memsvc("token", "create", "--data-dir", data)
        assert "STORE_LOCKED" in locked.stderr
        made = created("--user", "u", "--name", "tool", "--token-file", secret, **at)
        printed = memsvc("token", "create", "--user", "u", "--ttl", "1d", **at, TOKEN=first["secret"])
        assert printed.stdout.count(".") == 2, "the token alone goes to standard output"
        assert memsvc("remember", "Tea at four.", "-u", "u", **at, TOKEN=made["secret"]).returncode == 0
        other = memsvc("recall", "tea", "-u", "v", **at, TOKEN=made["secret"])
        assert "GRANT_MISSING" in other.stderr
        assert memsvc("stats", **at, TOKEN_FILE=secret).returncode == 0
        assert "GRANT_MISSING" in memsvc("stats", **at, TOKEN=made["secret"]).stderr
        listed = json.loads(memsvc("token", "list", "--tenant", "*", "-o", "json", **at, TOKEN_FILE=secret).stdout)
        assert [token["name"] for token in listed] == ["", "tool", "ops"]
        assert "last_use_time" in listed[1]
        table = memsvc("token", "list", **at, TOKEN_FILE=secret).stdout
        assert "tool" in table
        assert made["token_id"] in table, "an id that was cut could not be revoked"
        empty = tmp_path / "empty.token"
        empty.touch()
        assert "is empty" in memsvc("stats", **at, TOKEN_FILE=empty).stderr
        shown = memsvc("token", "show", made["token_id"], **at, TOKEN_FILE=secret)
        assert "user=read,write,propose" in shown.stdout
        assert memsvc("token", "rotate-keys", **at, TOKEN_FILE=secret).returncode == 0
        assert memsvc("recall", "tea", "-u", "u", **at, TOKEN=made["secret"]).returncode == 0
        assert "revoke_time" in memsvc("token", "revoke", made["token_id"], **at, TOKEN_FILE=secret).stdout
        assert "TOKEN_REVOKED" in memsvc("recall", "tea", "-u", "u", **at, TOKEN=made["secret"]).stderr
    with ServerProcess(data, "--require-token") as server:
        again = memsvc("recall", "tea", "-u", "u", SERVER=server.address, TOKEN=made["secret"])
        assert "TOKEN_REVOKED" in again.stderr
    assert memsvc("token", "revoke", first["token_id"], "--data-dir", data).returncode == 0
    for path in data.rglob("*"):
        if path.is_file():
            assert made["secret"].rpartition(".")[2].encode() not in path.read_bytes()


@pytest.fixture
def authority():
    return Authority()


@pytest.fixture
def files(tmp_path, authority):
    paths = {name: tmp_path / f"{name}.pem" for name in ("cert", "key", "ca")}
    certificate, key = authority.pair("first")
    for name, content in (("cert", certificate), ("key", key), ("ca", authority.pem)):
        paths[name].write_bytes(content)
    return paths


def serial(address, authority):
    """Serial number of the certificate that the server shows."""
    import socket
    import ssl

    context = ssl.create_default_context(cadata=authority.pem.decode())
    context.set_alpn_protocols(["h2"])
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port))) as plain, context.wrap_socket(plain, server_hostname=host) as tls:
        shown = tls.getpeercert(binary_form=True)
    return x509.load_der_x509_certificate(shown).serial_number


def test_tls_takes_tokens_and_renewed_certificates(tmp_path, authority, files):
    data = tmp_path / "data"
    made = created("--data-dir", data, "--user", "u")
    arguments = ("--listen", "0.0.0.0:0", "--tls-cert", str(files["cert"]), "--tls-key", str(files["key"]))
    with ServerProcess(data, *arguments) as server:
        address = server.address.replace("0.0.0.0", "127.0.0.1")
        at = {"SERVER": address, "SERVER_CA": files["ca"]}
        assert memsvc("remember", "Tea.", "-u", "u", **at, TOKEN=made["secret"]).returncode == 0
        assert "TOKEN_MISSING" in memsvc("recall", "tea", "-u", "u", **at).stderr
        assert memsvc("recall", "tea", "-u", "u", SERVER=address).returncode == 1, "in the clear"
        first = serial(address, authority)
        certificate, key = authority.pair("second")
        files["cert"].write_bytes(certificate)
        assert serial(address, authority) == first, "a certificate without its key is not taken"
        files["key"].write_bytes(key)
        assert serial(address, authority) == x509.load_pem_x509_certificate(certificate).serial_number
        assert memsvc("recall", "tea", "-u", "u", **at, TOKEN=made["secret"]).returncode == 0


def test_client_certificates(tmp_path, authority, files):
    data = tmp_path / "data"
    made = created("--data-dir", data, "--user", "u")
    arguments = ("--tls-cert", str(files["cert"]), "--tls-key", str(files["key"]), "--tls-client-ca", str(files["ca"]))
    request = spb.ListRequest(owners=pb.Owners(user_id="u"))
    metadata = (("authorization", f"Bearer {made['secret']}"),)
    certificate, key = authority.pair("client")
    stranger = Authority().pair("client")
    with ServerProcess(data, *arguments) as server:
        for pair, passes in (((certificate, key), True), (stranger, False), ((None, None), False)):
            credentials = grpc.ssl_channel_credentials(authority.pem, pair[1], pair[0])
            with grpc.secure_channel(server.address, credentials) as channel:
                stub = rpc.MemoryServiceStub(channel)
                if passes:
                    stub.List(request, metadata=metadata)
                else:
                    with pytest.raises(grpc.RpcError) as caught:
                        stub.List(request, metadata=metadata)
                    assert caught.value.code() == grpc.StatusCode.UNAVAILABLE


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--listen", "0.0.0.0:0"), "--tls-cert FILE and --tls-key FILE"),
        (("--tls-cert", "{cert}"), "TLS needs --tls-cert FILE and --tls-key FILE"),
        (("--tls-cert", "{cert}", "--tls-key", "{ca}"), "tls_key"),
        (("--tls-cert", "{cert}", "--tls-key", "{other}"), "is not the key of"),
        (("--tls-cert", "/nowhere", "--tls-key", "{key}"), "tls_cert /nowhere can't be used"),
    ],
)
def test_a_server_that_can_not_be_safe_does_not_start(tmp_path, authority, files, arguments, words):
    other = tmp_path / "other.pem"
    other.write_bytes(authority.pair("x")[1])
    given = [one.format(**files, other=other) for one in arguments]
    listen = [] if "--listen" in given else ["--listen", "127.0.0.1:0"]
    done = memsvc("serve", "--data-dir", tmp_path / "data", *listen, *given)
    assert done.returncode == 1
    assert words in " ".join(done.stderr.split())
