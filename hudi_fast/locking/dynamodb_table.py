"""The DynamoDB table that locks are kept in: its items, and the few requests that are made of it.

One item is one lock. Its key is called ``key``, the table has no other, and every attribute is text:

=======================  ====================================================================================
``key``                  which lock
``ownerName``            who has it
``leaseDuration``        milliseconds after which an item that nobody has changed is nobody's
``recordVersionNumber``  changes with every write of the item
``isReleased``           ``1`` where a holder has left the item behind; otherwise not there
=======================  ====================================================================================

Every write has a condition, and the client does not repeat requests by itself: a write that landed and whose answer was
lost would come back as one that met another's. A request that may or may not have been carried out is an ``OSError``.

Sources: ``DynamoDBBasedLockProviderBase`` (Apache Hudi), ``AmazonDynamoDBLockClient`` 1.2.0.
"""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hudi_fast.config.lock_options import LockOptions
from hudi_fast.errors import ConfigError, LockError
from hudi_fast.storage.extras import import_extra

__all__ = ["LockItem", "LockTable", "open_lock_table"]

_NEEDS = "A lock in DynamoDB"
_REGION = "us-east-1"
_SHORTEST_TIMEOUT, _LONGEST_TIMEOUT = 2.0, 10.0
_REQUESTS_IN_A_LEASE = 3
_SHORTEST_LEASE_MS = 100
_FIRST_POLL, _LONGEST_POLL = 0.05, 5.0
_THERE = ("ACTIVE", "UPDATING")
_NO_TABLE = "ResourceNotFoundException"
_IN_USE = "ResourceInUseException"
_CONDITION = "ConditionalCheckFailedException"
_PASSING = (
    "InternalServerError",
    "LimitExceededException",
    "ProvisionedThroughputExceededException",
    "RequestLimitExceeded",
    "RequestTimeout",
    "ServiceUnavailable",
    "ThrottlingException",
    "TransactionConflictException",
)
_UNSENT = (
    "ConnectionError",
    "CredentialRetrievalError",
    "HTTPClientError",
    "MetadataRetrievalError",
    "ResponseStreamingError",
)


@dataclass(frozen=True, slots=True)
class LockItem:
    """A lock as the table has it.

    Attributes:
        key: which lock.
        owner: who has it.
        lease_ms: after how many milliseconds without a change it is nobody's.
        version: of the item.
        released: whether its owner has left it behind.
    """

    key: str
    owner: str
    lease_ms: int
    version: str
    released: bool = False


class LockTable:
    """Requests of one table of locks. Thread-safe.

    All of them raise ``LockError`` when they are refused, and ``OSError`` when whether they were carried out is
    unknown. A table that is missing holds no lock, and is made with the first one.

    Args:
        client: of boto3, which does not repeat requests.
        options: name of the table, and how to make it.
    """

    def __init__(self, client: Any, options: LockOptions) -> None:
        self._client = client
        self._options = options
        self.name = options.dynamodb_table or ""

    def read(self, key: str) -> LockItem | None:
        """The lock as it is now; None when there is none."""
        answer = self._ask("get_item", Key={"key": {"S": key}}, ConsistentRead=True)
        found = (answer or {}).get("Item")
        return None if not found else self._item(key, found)

    def create(self, item: LockItem) -> bool:
        """Write a lock that is not there; False when it is. A missing table is made."""
        try:
            return self._put(item, "attribute_not_exists(#k)", {"#k": "key"}, {})
        except _NoTableError:
            self._make()
        try:
            return self._put(item, "attribute_not_exists(#k)", {"#k": "key"}, {})
        except _NoTableError:
            raise OSError(f"The DynamoDB table {self.name} was made and is gone again.") from None

    def replace_released(self, item: LockItem) -> bool:
        """Write over a lock that was left behind; False when it has changed."""
        names = {"#k": "key", "#r": "isReleased"}
        return self._replace(item, "attribute_exists(#k) AND #r = :r", names, {":r": "1"})

    def replace(self, item: LockItem, version: str) -> bool:
        """Write over that version of a lock; False when it has changed."""
        names = {"#k": "key", "#v": "recordVersionNumber"}
        return self._replace(item, "attribute_exists(#k) AND #v = :v", names, {":v": version})

    def renew(self, item: LockItem, version: str) -> bool:
        """Change the version of a lock of ours to a new one; False when it is not ours any more, or has another."""
        answer = self._ask(
            "update_item",
            Key={"key": {"S": item.key}},
            UpdateExpression="SET #l = :l, #v = :n",
            ConditionExpression="attribute_exists(#k) AND #v = :v AND #o = :o",
            ExpressionAttributeNames={
                "#k": "key",
                "#l": "leaseDuration",
                "#v": "recordVersionNumber",
                "#o": "ownerName",
            },
            ExpressionAttributeValues=_texts(
                {":l": str(item.lease_ms), ":n": item.version, ":v": version, ":o": item.owner}
            ),
        )
        return answer is not None

    def delete(self, key: str, owner: str, version: str) -> bool:
        """Delete that version of a lock of ours; False when it is not ours any more, or has another."""
        answer = self._ask(
            "delete_item",
            Key={"key": {"S": key}},
            ConditionExpression="attribute_exists(#k) AND #v = :v AND #o = :o",
            ExpressionAttributeNames={"#k": "key", "#v": "recordVersionNumber", "#o": "ownerName"},
            ExpressionAttributeValues=_texts({":v": version, ":o": owner}),
        )
        return answer is not None

    # ---- inside

    def _put(self, item: LockItem, condition: str, names: Mapping[str, str], values: Mapping[str, str]) -> bool:
        attributes = {
            "key": item.key,
            "ownerName": item.owner,
            "leaseDuration": str(item.lease_ms),
            "recordVersionNumber": item.version,
        }
        of_condition = {"ExpressionAttributeValues": _texts(values)} if values else {}
        answer = self._try(
            "put_item",
            Item=_texts(attributes),
            ConditionExpression=condition,
            ExpressionAttributeNames=dict(names),
            **of_condition,
        )
        return answer is not None

    def _item(self, key: str, found: Mapping[str, Mapping[str, Any]]) -> LockItem:
        values = {name: str(next(iter(value.values()), "")) for name, value in found.items()}
        try:
            owner, version = values["ownerName"], values["recordVersionNumber"]
            lease_ms = int(values["leaseDuration"])
        except (KeyError, ValueError):
            raise LockError(
                f"The item {key!r} of the DynamoDB table {self.name} is no lock: expected ownerName, leaseDuration and "
                f"recordVersionNumber, found {', '.join(sorted(values))}. Delete it, or name another partition key."
            ) from None
        return LockItem(key, owner, lease_ms, version, "isReleased" in values)

    def _replace(self, item: LockItem, condition: str, names: Mapping[str, str], values: Mapping[str, str]) -> bool:
        try:
            return self._put(item, condition, names, values)
        except _NoTableError:
            return False

    def _ask(self, operation: str, **arguments: Any) -> dict[str, Any] | None:
        """The answer to a request about a lock; None where its condition did not hold, or there is no table."""
        try:
            return self._try(operation, **arguments)
        except _NoTableError:
            return None

    def _try(self, operation: str, **arguments: Any) -> dict[str, Any] | None:
        errors = import_extra("botocore.exceptions", "aws", _NEEDS)
        try:
            answer: dict[str, Any] = getattr(self._client, operation)(TableName=self.name, **arguments)
        except errors.ClientError as error:
            code = str(error.response.get("Error", {}).get("Code", ""))
            status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
            if code == _CONDITION:
                return None
            if code == _NO_TABLE:
                raise _NoTableError from None
            if code == _IN_USE:
                raise _TableInUseError from None
            # What the service says of a signature repeats parts of the request: the code has to do.
            what = f"DynamoDB answered {code or status} to {operation} on the table of locks {self.name}"
            if code in _PASSING or status >= 500:
                raise OSError(f"{what}.") from None
            raise LockError(
                f"{what}. Check hoodie.write.lock.dynamodb.*, the credentials that boto3 finds, and what they may do."
            ) from None
        except errors.BotoCoreError as error:
            kinds = {kind.__name__ for kind in type(error).__mro__}
            # What a program says that was asked for credentials may be these.
            text = type(error).__name__ if "CredentialRetrievalError" in kinds else str(error)
            what = f"DynamoDB was not reached for {operation} on the table of locks {self.name}: {text}"
            if kinds.intersection(_UNSENT):
                raise OSError(what) from None
            raise LockError(f"{what.rstrip('.')}. Check hoodie.write.lock.dynamodb.* and boto3's settings.") from None
        return answer

    def _make(self) -> None:
        """Make the table if nobody does, and wait for it."""
        deadline = time.monotonic() + self._options.dynamodb_creation_ms / 1000
        pause, status = _FIRST_POLL, self._status()
        while status not in _THERE:
            if status == "":
                self._create()
            if time.monotonic() >= deadline:
                raise LockError(
                    f"The DynamoDB table of locks {self.name} is {status or 'not there'} after "
                    f"{self._options.dynamodb_creation_ms / 1000:g} s, not ACTIVE. Look at it, or raise "
                    "hoodie.write.lock.dynamodb.table_creation_timeout."
                )
            time.sleep(pause)
            pause, status = min(pause * 2, _LONGEST_POLL), self._status()

    def _status(self) -> str:
        try:
            answer = self._try("describe_table")
        except _NoTableError:
            return ""
        return str((answer or {})["Table"]["TableStatus"])

    def _create(self) -> None:
        mode = self._options.dynamodb_billing_mode
        capacity: dict[str, Any] = {}
        if mode == "PROVISIONED":
            capacity["ProvisionedThroughput"] = {
                "ReadCapacityUnits": self._options.dynamodb_read_capacity,
                "WriteCapacityUnits": self._options.dynamodb_write_capacity,
            }
        try:
            self._try(
                "create_table",
                AttributeDefinitions=[{"AttributeName": "key", "AttributeType": "S"}],
                KeySchema=[{"AttributeName": "key", "KeyType": "HASH"}],
                BillingMode=mode,
                **capacity,
            )
        except _TableInUseError:  # another writer makes it
            pass


class _NoTableError(Exception):
    """There is no such table, or not yet."""


class _TableInUseError(Exception):
    """There is such a table already, or it is being made or deleted."""


def open_lock_table(options: LockOptions) -> LockTable:
    """The table of locks that the options name; nothing is asked of it yet.

    Region and endpoint are those of the options; credentials are found as boto3 finds them.

    Raises:
        ConfigError: boto3 is missing, or its settings or those of the options are wrong.
    """
    if options.wait_ms < _SHORTEST_LEASE_MS:
        raise ConfigError(
            f"hoodie.write.lock.wait_time_ms={options.wait_ms} is the lease of a lock in DynamoDB, too, which must be "
            f"renewed several times in it: give {_SHORTEST_LEASE_MS} or more; 60000 is the default."
        )
    region = options.dynamodb_region or os.environ.get("AWS_REGION") or _REGION
    endpoint = options.dynamodb_endpoint
    if endpoint and "://" not in endpoint:
        endpoint = f"https://{endpoint}"
    timeout = min(max(options.wait_ms / 1000 / _REQUESTS_IN_A_LEASE, _SHORTEST_TIMEOUT), _LONGEST_TIMEOUT)
    settings = hash(tuple(sorted(item for item in os.environ.items() if item[0].startswith("AWS_"))))
    return LockTable(_client(os.getpid(), settings, region, endpoint, timeout), options)


@functools.lru_cache(maxsize=8)
def _client(_process: int, _settings: int, region: str, endpoint: str | None, timeout: float) -> Any:
    """A client of boto3 with its connections, kept for the next acquisition: making one takes longer than a lock.

    Args:
        _process: a forked process has connections of its own.
        _settings: of the environment, which boto3 looks at once.
        region: where the table is.
        endpoint: None for the service's own.
        timeout: seconds for an answer: several fit into a lease.
    """
    boto3 = import_extra("boto3.session", "aws", _NEEDS)
    config = import_extra("botocore.config", "aws", _NEEDS)
    errors = import_extra("botocore.exceptions", "aws", _NEEDS)
    try:
        return boto3.Session().client(
            "dynamodb",
            region_name=region,
            endpoint_url=endpoint,
            config=config.Config(
                connect_timeout=timeout, read_timeout=timeout, retries={"total_max_attempts": 1, "mode": "standard"}
            ),
        )
    except (errors.BotoCoreError, ValueError) as error:
        raise ConfigError(
            f"{_NEEDS} cannot be reached: {error} Check hoodie.write.lock.dynamodb.region, .endpoint_url and boto3's "
            "settings."
        ) from None


def _texts(values: Mapping[str, str]) -> dict[str, dict[str, str]]:
    return {name: {"S": value} for name, value in values.items()}
