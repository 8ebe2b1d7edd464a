{{ config(materialized='incremental', incremental_strategy='insert_overwrite', partition_by='city') }}
select count(*) as rides, sum(fare) as fare, city from {{ ref('fares') }} group by city
