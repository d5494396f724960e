"""moto's S3 server in its own process, and buckets in it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

START_SECONDS: Final = 120.0
KEYS: Final = {
    "AWS_ACCESS_KEY_ID": "tests",
    "AWS_SECRET_ACCESS_KEY": "tests",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}


class StorageServer:
    """A server that answers at `url`; botocore finds it by the variables in `environment`."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.environment: Mapping[str, str] = {**KEYS, "AWS_ENDPOINT_URL": url}
        import boto3  # not part of the lock

        self.client: Any = boto3.client(
            "s3",
            endpoint_url=url,
            aws_access_key_id="tests",
            aws_secret_access_key="tests",
            region_name="us-east-1",
        )

    def make_bucket(self, name: str, public: bool = True) -> str:
        """Make a bucket; if it is `public`, anyone may read its files. Returns the URL below which its
        files lie.
        """
        self.client.create_bucket(Bucket=name)
        if public:
            allowed = {
                "Effect": "Allow",
                "Principal": "*",
                "Action": "s3:GetObject",
                "Resource": f"arn:aws:s3:::{name}/*",
            }
            policy = {"Version": "2012-10-17", "Statement": [allowed]}
            self.client.put_bucket_policy(Bucket=name, Policy=json.dumps(policy))
        return f"{self.url}/{name}"

    def keys(self, bucket: str) -> list[str]:
        """The names of all files in a bucket."""
        return sorted(one["Key"] for one in self.client.list_objects_v2(Bucket=bucket).get("Contents", []))


@contextmanager
def storage_server() -> Iterator[StorageServer]:
    """Run a server without buckets."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    process = subprocess.Popen(
        command, env={**os.environ, **KEYS}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        _await(process, port)
        yield StorageServer(f"http://127.0.0.1:{port}")
    finally:
        process.terminate()
        process.wait(30)


def _await(process: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            assert process.poll() is None, "the server has ended"
            assert time.monotonic() < deadline, "the server does not start"
            time.sleep(0.05)
