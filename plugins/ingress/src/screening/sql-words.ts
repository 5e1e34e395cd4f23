const set = (words: string): ReadonlySet<string> => new Set(words.split(/\s+/).filter(Boolean));

/** Calls that no text of a person makes: time, files, the database itself. */
export const TELLING_CALLS = set(`
  benchmark pg_sleep load_file extractvalue updatexml xmltype group_concat concat_ws find_in_set name_const make_set unhex from_base64
  to_base64 current_user session_user system_user db_name database_to_xml query_to_xml table_to_xml lo_import lo_export lo_get lo_create
  sqlite_compileoption_get sqlite_compileoption_used sqlite_version load_extension json_extract json_build_object jsonb_pretty
  jsonb_build_object json_agg jsonb_agg array_to_json row_to_json string_to_array string_agg unistr sysdate connection_id last_insert_id
  row_count found_rows utl_http.request utl_inaddr.get_host_address utl_inaddr.get_host_name dbms_ldap.init dbms_pipe.receive_message
  dbms_lock.sleep ctxsys.drithsx.sn xp_cmdshell xp_dirtree xp_fileexist xp_regread sp_executesql sp_makewebtask openrowset opendatasource
  pg_read_file pg_ls_dir pg_read_binary_file current_setting set_config quote_ident quote_literal st_latfromgeohash st_pointfromgeohash
  gtid_subset aes_encrypt des_decrypt des_encrypt aes_decrypt substring_index period_add period_diff strcmp fn_virtualfilestats charindex
  patindex is_srvrolemember has_dbaccess ifnull nullif iif elt pg_client_encoding pg_backend_pid xmlagg dbms_xmlgen.getxml
`);
/** Calls that are also words of people and of programs: they tell with something else, or when their bracket is never closed. */
export const CALLS = set(`
  abs acos ascii asin atan atan2 avg bin bit_and bit_length bit_or bit_xor cast ceil ceiling char char_length character_length charset chr
  coalesce collation compress concat conv convert convert_tz cos cot count crc32 curdate current_date current_time current_timestamp
  curtime database date_add date_format date_sub day dayname decode default degrees distinct div encode encrypt exp export_set field floor
  format get_lock hex hour if inet_aton inet_ntoa insert instr interval isnull json_length lcase least left length ln load localtime
  locate log log10 log2 lower lpad ltrim max md5 mid min minute mod month now nvl oct octet_length ord password pi position pow power
  quarter radians rand random release_lock repeat replace reverse right round rpad rtrim schema second sha1 sha2 sign sin sleep soundex
  space sqrt std strftime substr substring sum tan time to_char to_number to_days trim truncate ucase uncompress uncompressed_length upper
  user uuid values variance version week weekday year xmlelement dump unicode stuff nchar
`);
/** Words that begin a statement. */
export const STATEMENTS = set(
  'select insert update delete drop create alter truncate exec execute declare union merge grant revoke replace shutdown waitfor begin call load set print handler attach pragma vacuum copy do rename kill backup restore desc describe',
);
/** Names of tables and views that a database has of itself, and of the samples that come with it. */
export const CATALOGS =
  /\b(?:information_schema|pg_catalog|pg_toast|pg_shadow|pg_user|pg_tables|sqlite_master|sqlite_schema|sqlite_temp_master|sysobjects|syscolumns|sysdatabases|sys\.(?:objects|columns|tables|databases|user_|all_)|master\.\.|msdb|tempdb|mysql\.(?:db|user|innodb|func|proc)|northwind|all_tables|user_tables|all_tab_columns|user_tab_columns|user_objects|dba_users|v\$version|msys(?:aces|accessobjects|objects|queries|relationships)|schema_name|table_schema|performance_schema|xmltype)\b/i;
