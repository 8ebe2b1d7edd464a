{{ config(materialized='view') }}
select ride, city, fare, ts from raw_rides where ts >= {{ var('since') }}
