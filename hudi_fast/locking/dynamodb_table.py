"""The DynamoDB table of locks: its items and requests.

Each lock is one item. The table's only key attribute is ``key``, and all attributes are text:

=======================  ====================================================================================
``key``                  name of the lock
``ownerName``            owner of the lock
``leaseDuration``        milliseconds without a change after which the lock expires
``recordVersionNumber``  changes with each write of the item
``isReleased``           ``1`` if the owner released the lock without deleting the item; otherwise absent
=======================  ====================================================================================

All writes are conditional. The client does not retry requests, because the retry of an executed write whose response
was lost would fail its condition. A request with an unknown outcome raises ``OSError``.

Sources: ``DynamoDBBasedLockProviderBase`` (Apache Hudi), ``AmazonDynamoDBLockClient`` 1.2.0.
"""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Mapping
from typing import Any

from hudi_fast.config.concurrency_options import LockOptions
from hudi_fast.errors import ConfigError, LockError
from hudi_fast.storage.extras import import_extra
from hudi_fast.values import dataclass

__all__ = ["LockItem", "LockTable", "open_lock_table"]

_NEEDS = "A lock in DynamoDB"
_REGION = "us-east-1"
_SHORTEST_TIMEOUT, _LONGEST_TIMEOUT = 2.0, 10.0
_REQUESTS_PER_LEASE = 3
_SHORTEST_LEASE_MS = 100
_FIRST_POLL, _LONGEST_POLL = 0.05, 5.0
_USABLE = ("ACTIVE", "UPDATING")
_NO_TABLE = "ResourceNotFoundException"
_IN_USE = "ResourceInUseException"
_CONDITION = "ConditionalCheckFailedException"
_TRANSIENT = (
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
    """One item of the lock table.

    Attributes:
        key: name of the lock.
        owner: owner name.
        lease_ms: milliseconds without a change after which the lock expires.
        version: version of the item.
        released: whether its owner released the lock without deleting the item.
    """

    key: str
    owner: str
    lease_ms: int
    version: str
    released: bool = False


class LockTable:
    """Requests to one lock table. Thread-safe.

    Requests raise ``LockError`` if they are refused, and ``OSError`` if it is unknown whether they were executed. A
    missing table has no locks; creating the first lock creates the table.

    Args:
        client: boto3 client without retries.
        options: name of the table, and settings for its creation.
    """

    def __init__(self, client: Any, options: LockOptions) -> None:
        self._client = client
        self._options = options
        self.name = options.dynamodb_table or ""

    def read(self, key: str) -> LockItem | None:
        """The current item of a lock, or None."""
        answer = self._ask("get_item", Key={"key": {"S": key}}, ConsistentRead=True)
        found = (answer or {}).get("Item")
        return None if not found else self._item(key, found)

    def create(self, item: LockItem) -> bool:
        """Create the item of a lock; False if it exists. A missing table is created."""
        try:
            return self._put(item, "attribute_not_exists(#k)", {"#k": "key"}, {})
        except _NoTableError:
            self._ensure_table()
        try:
            return self._put(item, "attribute_not_exists(#k)", {"#k": "key"}, {})
        except _NoTableError:
            raise OSError(f"The DynamoDB table {self.name} was created and deleted again.") from None

    def replace_released(self, item: LockItem) -> bool:
        """Replace a released item; False if it has changed."""
        names = {"#k": "key", "#r": "isReleased"}
        return self._replace(item, "attribute_exists(#k) AND #r = :r", names, {":r": "1"})

    def replace(self, item: LockItem, version: str) -> bool:
        """Replace ``version`` of an item; False if it has changed."""
        names = {"#k": "key", "#v": "recordVersionNumber"}
        return self._replace(item, "attribute_exists(#k) AND #v = :v", names, {":v": version})

    def renew(self, item: LockItem, version: str) -> bool:
        """Give our item a new version; False if it is no longer ours or has another version."""
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
        """Delete our item; False if it is no longer ours or has another version."""
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
                f"The item {key!r} of the DynamoDB table {self.name} is not a lock: expected ownerName, leaseDuration "
                f"and recordVersionNumber, found {', '.join(sorted(values))}. Delete it, or use another partition key."
            ) from None
        return LockItem(key, owner, lease_ms, version, "isReleased" in values)

    def _replace(self, item: LockItem, condition: str, names: Mapping[str, str], values: Mapping[str, str]) -> bool:
        try:
            return self._put(item, condition, names, values)
        except _NoTableError:
            return False

    def _ask(self, operation: str, **arguments: Any) -> dict[str, Any] | None:
        """The response to a request; None if its condition failed or the table does not exist."""
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
            # A message about a signature repeats parts of the request, so only the error code is shown.
            what = f"DynamoDB answered {code or status} to {operation} on the lock table {self.name}"
            if code in _TRANSIENT or status >= 500:
                raise OSError(f"{what}.") from None
            raise LockError(
                f"{what}. Check hoodie.write.lock.dynamodb.*, the credentials that boto3 finds, and their permissions."
            ) from None
        except errors.BotoCoreError as error:
            kinds = {kind.__name__ for kind in type(error).__mro__}
            # The output of a credential program may contain credentials.
            text = type(error).__name__ if "CredentialRetrievalError" in kinds else str(error)
            what = f"DynamoDB was not reached for {operation} on the lock table {self.name}: {text}"
            if kinds.intersection(_UNSENT):
                raise OSError(what) from None
            raise LockError(f"{what.rstrip('.')}. Check hoodie.write.lock.dynamodb.* and boto3's settings.") from None
        return answer

    def _ensure_table(self) -> None:
        """Create the table unless another writer does, and wait until it is usable."""
        deadline = time.monotonic() + self._options.dynamodb_creation_ms / 1000
        pause, status = _FIRST_POLL, self._status()
        while status not in _USABLE:
            if status == "":
                self._create()
            if time.monotonic() >= deadline:
                raise LockError(
                    f"The DynamoDB lock table {self.name} is {status or 'missing'} after "
                    f"{self._options.dynamodb_creation_ms / 1000:g} s; expected ACTIVE. Check the table, or raise "
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
        except _TableInUseError:  # another writer creates it
            pass


class _NoTableError(Exception):
    """The table does not exist (yet)."""


class _TableInUseError(Exception):
    """The table exists, or is being created or deleted."""


def open_lock_table(options: LockOptions) -> LockTable:
    """Open the lock table of the options, without a request.

    Region and endpoint come from the options, credentials from boto3's usual sources.

    Raises:
        ConfigError: boto3 is missing, or an option or a setting of boto3 is invalid.
    """
    if options.wait_ms < _SHORTEST_LEASE_MS:
        raise ConfigError(
            f"hoodie.write.lock.wait_time_ms={options.wait_ms} is also the lease of a lock in DynamoDB and too short "
            f"for its renewals: give {_SHORTEST_LEASE_MS} or more; 60000 is the default."
        )
    region = options.dynamodb_region or os.environ.get("AWS_REGION") or _REGION
    endpoint = options.dynamodb_endpoint
    if endpoint and "://" not in endpoint:
        endpoint = f"https://{endpoint}"
    timeout = min(max(options.wait_ms / 1000 / _REQUESTS_PER_LEASE, _SHORTEST_TIMEOUT), _LONGEST_TIMEOUT)
    settings = hash(tuple(sorted(item for item in os.environ.items() if item[0].startswith("AWS_"))))
    return LockTable(_client(os.getpid(), settings, region, endpoint, timeout), options)


@functools.lru_cache(maxsize=8)
def _client(_process: int, _settings: int, region: str, endpoint: str | None, timeout: float) -> Any:
    """A cached boto3 client; creating one takes longer than acquiring a lock.

    Args:
        _process: process id; a forked process needs its own connections.
        _settings: hash of the AWS environment variables, which boto3 reads only once.
        region: AWS region of the table.
        endpoint: endpoint URL; None = the AWS endpoint of the region.
        timeout: request timeout in seconds; several requests fit into a lease.
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
