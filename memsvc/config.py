"""Settings: the one place that reads the environment.

Purpose: every setting has a default, a unit in its name, and one description that `--help`, README and errors share.
Precedence: command line (passed in as keyword arguments), environment (`MEMSVC_*`), default.

Threading: frozen after construction.

Rejected: a configuration file (two places for one truth while a command line and an environment do).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict


def _default_data_dir() -> Path:
    base = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return Path(base) / "memsvc"


def default_model_cache_dir() -> Path:
    """Where built and pulled models are kept: $XDG_CACHE_HOME/memsvc/models, or ~/.cache/memsvc/models."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "memsvc" / "models"


class Settings(BaseSettings):
    """All settings of the server. Environment variables are the upper-case names behind MEMSVC_."""

    model_config = SettingsConfigDict(env_prefix="MEMSVC_", frozen=True, extra="forbid", env_ignore_empty=True)

    data_dir: Path = Field(default_factory=_default_data_dir, description="Directory of the store.")
    listen: str = Field("127.0.0.1:50051", description="HOST:PORT to serve gRPC on; port 0 takes a free one.")
    token_keep_expired_days: float = Field(
        30.0, ge=0, le=3650, description="Days for which an expired token stays listed."
    )
    require_token: bool = Field(False, description="Take calls with a token only, on loopback too.")
    token_reads_per_minute: int = Field(
        0, ge=0, le=10**9, description="Reading calls a minute of a token that names none; 0: unlimited."
    )
    token_writes_per_minute: int = Field(
        0, ge=0, le=10**9, description="Other calls a minute of a token that names none; 0: unlimited."
    )
    tls_cert: Path | None = Field(None, description="PEM file of the server's certificate chain; turns TLS on.")
    tls_key: Path | None = Field(None, description="PEM file of its private key.")
    tls_client_ca: Path | None = Field(
        None, description="PEM file of the CAs whose client certificates are taken; each client then needs one."
    )
    model: str = Field("", description="Model directory (model.onnx, tokenizer.json); empty: the default model.")
    latency_budget_ms: float = Field(50.0, gt=0, le=60_000, description="Budget of a recall that names none.")
    worker_threads: int = Field(16, ge=1, le=1024, description="Calls served at once.")
    admission_queue_max: int = Field(
        0,
        ge=0,
        le=1_000_000,
        description="Calls that may wait before heavy ones are refused; 0: any number.",
    )
    watch_streams_max: int = Field(128, ge=1, le=4096, description="Watch streams served at once.")
    answer_retention_hours: float = Field(24.0, gt=0, description="How long a request_id is remembered.")
    preload_rows: int = Field(2000, ge=0, description="Namespaces with more changes are loaded before `ready`.")
    map_size_max_bytes: int = Field(2**40, ge=2**20, description="Upper limit of the store's size.")
    segment_save_rows: int = Field(
        5000, ge=1, description="Save a segment's index after this many changes, and at a clean stop."
    )
    content_max_bytes: int = Field(65_536, ge=1, le=2**24, description="Largest content of a memory, in UTF-8.")
    log_level: str = Field("INFO", description="DEBUG, INFO, WARNING or ERROR. Logs hold no content.")
    sensitive_policy: str = Field(
        "", description='Secrets by tenant as JSON, such as {"*": {"phone": "redact"}}; empty: reject all kinds.'
    )
    staging_days: float = Field(14.0, gt=0, le=3650, description="How long a staged memory waits.")
    staging_sessions: int = Field(
        2, ge=1, le=100, description="In how many sessions a staged memory must be met to become long-term."
    )
    session_ttl_hours: float = Field(24.0, gt=0, le=720, description="How long a session lives without a call.")
    session_window_turns: int = Field(6, ge=1, le=100, description="Last turns of a session that are kept verbatim.")
    session_summary_tokens: int = Field(
        200, ge=0, le=4096, description="Most tokens of the summary of what a session said before them."
    )
    session_tool_outputs: int = Field(5, ge=0, le=100, description="Outputs of tools that a session keeps.")
    session_tool_output_chars: int = Field(500, ge=1, le=65_536, description="Longest output of a tool in a session.")
    sessions_max: int = Field(10_000, ge=1, le=1_000_000, description="Sessions open at once.")
    access_flush_s: float = Field(
        5.0,
        gt=0,
        le=3600,
        description="How often uses of memories are written; a crash loses at most those since then.",
    )
    lifecycle_policy: str = Field(
        "",
        description='Forgetting curve and rates as JSON, such as {"stability_days": {"event": 60}}; empty: defaults.',
    )
    lifecycle_interval_hours: float = Field(
        6.0, ge=0, le=8760, description="How often memories are archived, expired and proposed; 0: never by itself."
    )
    fade_below: float = Field(0.45, ge=0, le=1, description="Retention below which a memory ranks lower.")
    archive_below: float = Field(0.1, ge=0, le=1, description="Retention below which a memory is archived.")
    chat_url: str = Field(
        "", description="Base URL of an OpenAI-compatible endpoint that judges unclear messages and condenses sessions."
    )
    chat_model: str = Field("", description="Model that the endpoint is asked for.")
    chat_api_key: SecretStr = Field(SecretStr(""), description="Key of the endpoint.")
    chat_timeout_s: float = Field(8.0, gt=0, le=120, description="Time for one question, retries included.")
    audit_reads: Literal["off", "sampled", "full"] = Field(
        "sampled", description="Which reads the audit notes; those with an exchanged token always."
    )
    audit_sample: int = Field(100, ge=1, le=1_000_000, description="A sampled audit notes one read of so many.")
    hf_endpoint: str = Field("", description="Hub that `memsvc model pull` asks; empty: huggingface.co.")


class ClientSettings(BaseSettings):
    """Settings of the command line as a client of a running server."""

    model_config = SettingsConfigDict(env_prefix="MEMSVC_", frozen=True, extra="ignore", env_ignore_empty=True)

    server: str = Field("127.0.0.1:50051", description="HOST:PORT of the server to talk to.")
    user_id: str = Field("", description="User id of the calls.")
    project_id: str = Field("", description="Project id of the calls.")
    agent_id: str = Field("", description="Agent id of the calls.")
    session_id: str = Field("", description="Session id of the calls.")
    tenant: str = Field("", description="Tenant of the calls; empty: default.")
    token: SecretStr = Field(SecretStr(""), description="Token of the calls.")
    token_file: Path | None = Field(None, description="File that holds the token, if `token` is empty.")
    server_ca: Path | None = Field(None, description="PEM file of the CA of the server's certificate; turns TLS on.")
