// The part of the Hive metastore's Thrift interface that hudi_fast calls.
//
// Tables and partitions are read, changed and written back. Their structs therefore have all fields of Hive 4.0, but for
// column statistics and what only materialized views have. Numbers of fields are the same from Hive 1.2 to 4.0, and calls
// exist in all of these releases. Of structs for locks, only the fields that are used are here.
//
// Source: hive_metastore.thrift of Apache Hive 2.3 and 4.0.

enum PrincipalType {
  USER = 1,
  ROLE = 2,
  GROUP = 3
}

enum SerdeType {
  HIVE = 1,
  SCHEMA_REGISTRY = 2
}

enum LockType {
  SHARED_READ = 1,
  SHARED_WRITE = 2,
  EXCLUSIVE = 3
}

enum LockLevel {
  DB = 1,
  TABLE = 2,
  PARTITION = 3
}

enum LockState {
  ACQUIRED = 1,
  WAITING = 2,
  ABORT = 3,
  NOT_ACQUIRED = 4
}

struct FieldSchema {
  1: string name
  2: string type
  3: string comment
}

struct PrivilegeGrantInfo {
  1: string privilege
  2: i32 createTime
  3: string grantor
  4: PrincipalType grantorType
  5: bool grantOption
}

struct PrincipalPrivilegeSet {
  1: map<string, list<PrivilegeGrantInfo>> userPrivileges
  2: map<string, list<PrivilegeGrantInfo>> groupPrivileges
  3: map<string, list<PrivilegeGrantInfo>> rolePrivileges
}

struct Database {
  1: string name
  2: string description
  3: string locationUri
  4: map<string, string> parameters
  5: optional PrincipalPrivilegeSet privileges
  6: optional string ownerName
  7: optional PrincipalType ownerType
  8: optional string catalogName
  9: optional i32 createTime
  10: optional string managedLocationUri
}

struct SerDeInfo {
  1: string name
  2: string serializationLib
  3: map<string, string> parameters
  4: optional string description
  5: optional string serializerClass
  6: optional string deserializerClass
  7: optional SerdeType serdeType
}

struct Order {
  1: string col
  2: i32 order
}

struct SkewedInfo {
  1: list<string> skewedColNames
  2: list<list<string>> skewedColValues
  3: map<list<string>, string> skewedColValueLocationMaps
}

struct StorageDescriptor {
  1: list<FieldSchema> cols
  2: string location
  3: string inputFormat
  4: string outputFormat
  5: bool compressed
  6: i32 numBuckets
  7: SerDeInfo serdeInfo
  8: list<string> bucketCols
  9: list<Order> sortCols
  10: map<string, string> parameters
  11: optional SkewedInfo skewedInfo
  12: optional bool storedAsSubDirectories
}

struct Table {
  1: string tableName
  2: string dbName
  3: string owner
  4: i32 createTime
  5: i32 lastAccessTime
  6: i32 retention
  7: StorageDescriptor sd
  8: list<FieldSchema> partitionKeys
  9: map<string, string> parameters
  10: string viewOriginalText
  11: string viewExpandedText
  12: string tableType
  13: optional PrincipalPrivilegeSet privileges
  14: optional bool temporary
  15: optional bool rewriteEnabled
  17: optional string catName
  18: optional PrincipalType ownerType
  19: optional i64 writeId
  20: optional bool isStatsCompliant
  22: optional byte accessType
  23: optional list<string> requiredReadCapabilities
  24: optional list<string> requiredWriteCapabilities
  25: optional i64 id
  28: optional i64 txnId
}

struct Partition {
  1: list<string> values
  2: string dbName
  3: string tableName
  4: i32 createTime
  5: i32 lastAccessTime
  6: StorageDescriptor sd
  7: map<string, string> parameters
  8: optional PrincipalPrivilegeSet privileges
  9: optional string catName
  10: optional i64 writeId
  11: optional bool isStatsCompliant
}

struct EnvironmentContext {
  1: map<string, string> properties
}

struct AddPartitionsRequest {
  1: required string dbName
  2: required string tblName
  3: required list<Partition> parts
  4: required bool ifNotExists
  5: optional bool needResult
}

struct AddPartitionsResult {
  1: optional list<Partition> partitions
}

struct LockComponent {
  1: required LockType type
  2: required LockLevel level
  3: required string dbname
  4: optional string tablename
}

struct LockRequest {
  1: required list<LockComponent> component
  2: optional i64 txnid
  3: required string user
  4: required string hostname
  5: optional string agentInfo
}

struct LockResponse {
  1: required i64 lockid
  2: required LockState state
}

struct HeartbeatRequest {
  1: optional i64 lockid
  2: optional i64 txnid
}

struct UnlockRequest {
  1: required i64 lockid
}

struct ShowLocksRequest {
  1: optional string dbname
  2: optional string tablename
}

struct ShowLocksResponseElement {
  1: required i64 lockid
  2: required string dbname
  3: optional string tablename
  5: required LockState state
  10: required string user
  11: required string hostname
  13: optional string agentInfo
}

struct ShowLocksResponse {
  1: list<ShowLocksResponseElement> locks
}

exception MetaException {
  1: string message
}

exception NoSuchObjectException {
  1: string message
}

exception AlreadyExistsException {
  1: string message
}

exception InvalidObjectException {
  1: string message
}

exception InvalidOperationException {
  1: string message
}

exception NoSuchLockException {
  1: string message
}

exception NoSuchTxnException {
  1: string message
}

exception TxnAbortedException {
  1: string message
}

exception TxnOpenException {
  1: string message
}

service ThriftHiveMetastore {
  Database get_database(1: string name)
    throws (1: NoSuchObjectException missing, 2: MetaException failed)
  void create_database(1: Database database)
    throws (1: AlreadyExistsException exists, 2: InvalidObjectException invalid, 3: MetaException failed)
  list<string> get_all_databases() throws (1: MetaException failed)
  list<string> get_all_tables(1: string db_name) throws (1: MetaException failed)
  Table get_table(1: string dbname, 2: string tbl_name)
    throws (1: MetaException failed, 2: NoSuchObjectException missing)
  void create_table(1: Table tbl)
    throws (1: AlreadyExistsException exists, 2: InvalidObjectException invalid, 3: MetaException failed,
            4: NoSuchObjectException missing)
  void alter_table_with_environment_context(1: string dbname, 2: string tbl_name, 3: Table new_tbl,
                                            4: EnvironmentContext environment_context)
    throws (1: InvalidOperationException refused, 2: MetaException failed)
  void drop_table(1: string dbname, 2: string name, 3: bool deleteData)
    throws (1: NoSuchObjectException missing, 2: MetaException failed)
  AddPartitionsResult add_partitions_req(1: AddPartitionsRequest request)
    throws (1: InvalidObjectException invalid, 2: AlreadyExistsException exists, 3: MetaException failed)
  void alter_partitions(1: string db_name, 2: string tbl_name, 3: list<Partition> new_parts)
    throws (1: InvalidOperationException refused, 2: MetaException failed)
  bool drop_partition_by_name(1: string db_name, 2: string tbl_name, 3: string part_name, 4: bool deleteData)
    throws (1: NoSuchObjectException missing, 2: MetaException failed)
  list<string> get_partition_names(1: string db_name, 2: string tbl_name, 3: i16 max_parts)
    throws (1: MetaException failed, 2: NoSuchObjectException missing)
  list<Partition> get_partitions(1: string db_name, 2: string tbl_name, 3: i16 max_parts)
    throws (1: NoSuchObjectException missing, 2: MetaException failed)
  list<Partition> get_partitions_by_names(1: string db_name, 2: string tbl_name, 3: list<string> names)
    throws (1: MetaException failed, 2: NoSuchObjectException missing)

  LockResponse lock(1: LockRequest rqst) throws (1: NoSuchTxnException missing, 2: TxnAbortedException aborted)
  void heartbeat(1: HeartbeatRequest ids)
    throws (1: NoSuchLockException gone, 2: NoSuchTxnException missing, 3: TxnAbortedException aborted)
  void unlock(1: UnlockRequest rqst) throws (1: NoSuchLockException gone, 2: TxnOpenException open)
  ShowLocksResponse show_locks(1: ShowLocksRequest rqst)
}
