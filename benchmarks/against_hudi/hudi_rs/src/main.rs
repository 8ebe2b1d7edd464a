//! The calls of hudi-rs that the benchmark times, in one process that lives for all runs of a case.
//!
//! Reads one call a line from the standard input, its words separated by tabs, and answers `done` after each:
//!
//! ```text
//! load    <folder of Parquet files>  <table>  <COPY_ON_WRITE or MERGE_ON_READ>  <record or simple>
//! upsert  <folder of Parquet files>  <table>
//! read    <table>
//! keep    <table>  <file>
//! ```
//!
//! `read` drops every row; `keep` stores all rows in one Parquet file. The only argument is the number of threads. Any
//! error ends the process with status 1.

use std::error::Error;
use std::fs::{self, File};
use std::io::{self, BufRead, Write};
use std::path::PathBuf;

use arrow_array::RecordBatch;
use futures::{StreamExt, TryStreamExt, stream};
use hudi_core::config::table::TableTypeValue;
use hudi_core::file_group::file_slice::FileSlice;
use hudi_core::file_group::reader::FileGroupReader;
use hudi_core::table::{ReadOptions, Table};
use hudi_core::util::collection::split_into_chunks;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use tokio::sync::mpsc;
use tokio::task::{JoinSet, spawn_blocking};

type Failure = Box<dyn Error + Send + Sync>;

/// Rows of a batch of the input.
const BATCH_ROWS: usize = 65_536;

fn main() -> Result<(), Failure> {
    let threads: usize = std::env::args()
        .nth(1)
        .ok_or("usage: hudi_rs_verbs <threads>")?
        .parse()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        .enable_all()
        .build()?;
    for line in io::stdin().lock().lines() {
        let line = line?;
        let words: Vec<String> = line.split('\t').map(String::from).collect();
        // On a worker thread: the main thread would be one more.
        runtime.block_on(runtime.spawn(async move { call(&words, threads).await }))??;
        println!("done");
        io::stdout().flush()?;
    }
    Ok(())
}

async fn call(words: &[String], threads: usize) -> Result<(), Failure> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["load", rows, table, table_type, index] => load(rows, table, table_type, index, threads).await,
        ["upsert", rows, table] => upsert(rows, table, threads).await,
        ["read", table] => read(table, threads).await,
        ["keep", table, file] => keep(table, file, threads).await,
        _ => Err(format!("unknown call: {words:?}").into()),
    }
}

/// Load a new table. The codec is hudi-rs' default, zstd.
async fn load(rows: &str, table: &str, table_type: &str, index: &str, threads: usize) -> Result<(), Failure> {
    let table_type = match table_type {
        "COPY_ON_WRITE" => TableTypeValue::CopyOnWrite,
        "MERGE_ON_READ" => TableTypeValue::MergeOnRead,
        _ => return Err(format!("unknown table type: {table_type}").into()),
    };
    let batches = input(rows, threads).await?;
    let mut created = Table::create(table)
        .with_table_name("trips")
        .with_table_type(table_type)
        .with_record_key_fields(["uuid"])
        .with_partition_fields(["city"])
        .with_ordering_fields(["ts"])
        .with_record_index_enabled(index == "record")
        .create()
        .await?;
    created.append(batches).await?;
    Ok(())
}

async fn upsert(rows: &str, table: &str, threads: usize) -> Result<(), Failure> {
    let batches = input(rows, threads).await?;
    Table::new(table).await?.upsert(batches).await?;
    Ok(())
}

async fn read(table: &str, threads: usize) -> Result<(), Failure> {
    for_each_batch(table, threads, |_| Ok(())).await
}

async fn keep(table: &str, file: &str, threads: usize) -> Result<(), Failure> {
    let mut writer = None;
    for_each_batch(table, threads, |batch| {
        if writer.is_none() {
            writer = Some(ArrowWriter::try_new(File::create(file)?, batch.schema(), None)?);
        }
        Ok(writer.as_mut().expect("just set").write(&batch)?)
    })
    .await?;
    writer.ok_or("the table has no rows")?.close()?;
    Ok(())
}

/// Read a snapshot with a share of the file slices on each thread, as query engines do. hudi-rs' own stream of a table
/// reads one file slice after the other, and its `read` returns all rows at once.
async fn for_each_batch(
    table: &str,
    threads: usize,
    mut take: impl FnMut(RecordBatch) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let table = Table::new(table).await?;
    let options = ReadOptions::new();
    let reader = table
        .create_file_group_reader_with_options(Some(&options), std::iter::empty::<(&str, &str)>())
        .await?;
    let (sender, mut receiver) = mpsc::channel(2 * threads);
    let mut tasks = JoinSet::new();
    for slices in split_into_chunks(table.get_file_slices(&options).await?, threads) {
        tasks.spawn(send_rows(reader.clone(), slices, options.clone(), sender.clone()));
    }
    drop(sender);
    while let Some(batch) = receiver.recv().await {
        take(batch)?;
    }
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    Ok(())
}

async fn send_rows(
    reader: FileGroupReader,
    slices: Vec<FileSlice>,
    options: ReadOptions,
    sender: mpsc::Sender<RecordBatch>,
) -> Result<(), Failure> {
    for slice in slices {
        let mut batches = reader.read_file_slice_stream(&slice, &options).await?;
        while let Some(batch) = batches.try_next().await? {
            sender.send(batch).await?;
        }
    }
    Ok(())
}

/// All rows of the Parquet files of a folder, in the order of their names; decodes one file per thread.
async fn input(folder: &str, threads: usize) -> Result<Vec<RecordBatch>, Failure> {
    let mut files = fs::read_dir(folder)?
        .map(|entry| Ok(entry?.path()))
        .collect::<io::Result<Vec<PathBuf>>>()?;
    files.sort();
    let decoded = stream::iter(
        files
            .into_iter()
            .map(|file| async { spawn_blocking(|| decode(file)).await? }),
    )
    .buffered(threads);
    Ok(decoded.try_collect::<Vec<_>>().await?.into_iter().flatten().collect())
}

fn decode(file: PathBuf) -> Result<Vec<RecordBatch>, Failure> {
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(file)?)?
        .with_batch_size(BATCH_ROWS)
        .build()?;
    Ok(reader.collect::<Result<_, _>>()?)
}
