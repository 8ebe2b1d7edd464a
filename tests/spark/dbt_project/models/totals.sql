{{ config(materialized='table', unique_key='country') }}
select c.country, sum(f.fare) as fare from {{ ref('fares') }} f join {{ ref('cities') }} c on f.city = c.city
group by c.country
