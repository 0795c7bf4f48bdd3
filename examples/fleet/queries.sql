-- Questions about all reports, for DuckDB: duckdb < queries.sql, after lull fleet --parquet fleet.parquet FOLDER.

-- GPU hours lost, by cause.
select cause, sum(lost_ns) / 3.6e12 as hours, count(distinct job) as jobs
from 'fleet.parquet' where cause is not null group by cause order by hours desc;

-- Jobs, those that lose most first. gpu_ns is that of the report, in each of its rows.
with report as (
  select file, any_value(job) as job, any_value(gpu_ns) as gpu_ns, sum(lost_ns) as lost_ns
  from 'fleet.parquet' where state = 'good' group by file)
select job, count(*) as reports, sum(gpu_ns) / 3.6e12 as gpu_hours, sum(lost_ns) / 3.6e12 as lost_hours,
       100.0 * sum(lost_ns) / sum(gpu_ns) as lost_percent
from report group by job order by lost_hours desc limit 20;

-- The step time of each job, day by day: did something get slower?
select job, date_trunc('day', make_timestamp(start_utc_ns // 1000)) as day, median(step_ns) / 1e6 as step_ms
from (select distinct file, job, start_utc_ns, step_ns from 'fleet.parquet' where state = 'good')
group by job, day order by job, day;

-- Reports that cannot be read.
select distinct file, trouble from 'fleet.parquet' where state = 'damaged';
