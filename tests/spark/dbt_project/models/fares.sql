{{ config(
    materialized='incremental',
    incremental_strategy='merge',
    unique_key='ride',
    partition_by='city',
    options={'type': 'mor', 'preCombineField': 'ts'},
    on_schema_change='append_new_columns',
    persist_docs={'relation': true, 'columns': true}
) }}
select ride, fare, ts, {% if var('with_country') %} country, {% endif %} city
from {{ ref('recent') }} join {{ ref('cities') }} using (city)
{% if is_incremental() %}
where ts > (select max(ts) from {{ this }})
{% endif %}
