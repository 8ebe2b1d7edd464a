{{ config(materialized='incremental', incremental_strategy='append') }}
select max(ts) as ts from {{ ref('fares') }}
