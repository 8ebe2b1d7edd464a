"""A bucket whose new objects are told to a queue, on the S3 server of :mod:`tests.servers.s3` that is moto."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from typing import Any

import boto3

from tests.servers.s3 import ACCESS_KEY, REGION, SECRET_KEY, S3Server

__all__ = ["NotifiedBucket"]

WAIT_SECONDS = 30.0


class NotifiedBucket:
    """A bucket and its queue."""

    def __init__(self, server: S3Server, name: str) -> None:
        keys = {"aws_access_key_id": ACCESS_KEY, "aws_secret_access_key": SECRET_KEY, "region_name": REGION}
        self.name, self._objects = name, boto3.client("s3", endpoint_url=server.url, **keys)
        self._queues = boto3.client("sqs", endpoint_url=server.url, **keys)
        self._objects.create_bucket(Bucket=name)
        self.url: str = self._queues.create_queue(QueueName=f"{name}-events")["QueueUrl"]
        asked = ["QueueArn"]
        arn = self._queues.get_queue_attributes(QueueUrl=self.url, AttributeNames=asked)["Attributes"]["QueueArn"]
        told = {"QueueConfigurations": [{"QueueArn": arn, "Events": ["s3:ObjectCreated:*", "s3:ObjectRemoved:*"]}]}
        self._objects.put_bucket_notification_configuration(Bucket=name, NotificationConfiguration=told)
        self._queues.purge_queue(QueueUrl=self.url)  # S3's test event

    def close(self) -> None:
        """Close the connections."""
        self._objects.close()
        self._queues.close()

    def put(self, key: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Write rows as JSON lines; S3 sends an event."""
        self.put_bytes(key, "\n".join(map(json.dumps, rows)).encode())

    def put_bytes(self, key: str, data: bytes) -> None:
        """Write an object; S3 sends an event."""
        self._objects.put_object(Bucket=self.name, Key=key, Body=data)

    def delete(self, key: str) -> None:
        """Delete an object; S3 sends an event."""
        self._objects.delete_object(Bucket=self.name, Key=key)

    def send(self, body: str) -> None:
        """Send any message."""
        self._queues.send_message(QueueUrl=self.url, MessageBody=body)

    def bodies(self) -> list[str]:
        """The bodies of the messages that wait; they wait again afterwards."""
        found = list[dict[str, Any]]()
        while True:
            answer = self._queues.receive_message(QueueUrl=self.url, MaxNumberOfMessages=10, VisibilityTimeout=60)
            if not answer.get("Messages"):
                break
            found += answer["Messages"]
        for one in found:
            receipt = one["ReceiptHandle"]
            self._queues.change_message_visibility(QueueUrl=self.url, ReceiptHandle=receipt, VisibilityTimeout=0)
        return [one["Body"] for one in found]

    def left(self) -> int:
        """The number of messages that are not deleted, received or not."""
        return sum(self._counts())

    def wait(self) -> None:
        """Until all messages are visible that a process received and did not delete."""
        deadline = time.monotonic() + WAIT_SECONDS
        while self._counts()[1]:
            assert time.monotonic() < deadline
            time.sleep(0.05)

    def _counts(self) -> tuple[int, int]:
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        found = self._queues.get_queue_attributes(QueueUrl=self.url, AttributeNames=names)["Attributes"]
        return int(found[names[0]]), int(found[names[1]])
