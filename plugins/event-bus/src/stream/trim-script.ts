/**
 * Cuts one stream and writes down what that took from whom; answers how many entries went. One script, so that nothing is read or taken
 * between the look and the cut. KEYS: stream, gaps of its environment. ARGV: oldest id to keep, most entries, since when a group counts as
 * seen (ms), family.
 */
export const TRIM = `
local key, gaps, horizon, most, since, family = KEYS[1], KEYS[2], ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]
local LAST = '18446744073709551615'
local function split(id)
  local ms, seq = string.match(id, '^(%d+)%-(%d+)$')
  return tonumber(ms), tonumber(seq)
end
local function before(left, right)
  local lms, lseq = split(left)
  local rms, rseq = split(right)
  if lms == rms then return lseq < rseq end
  return lms < rms
end
local function below(id)
  local ms, seq = split(id)
  if seq > 0 then return string.format('%.0f-%.0f', ms, seq - 1) end
  return string.format('%.0f-', ms - 1) .. LAST
end
local function record(pairs)
  local made = {}
  for index = 1, #pairs - 1, 2 do made[pairs[index]] = pairs[index + 1] end
  return made
end
local function first()
  local rows = redis.call('XRANGE', key, '-', '+', 'COUNT', 1)
  return rows[1] and rows[1][1]
end

local oldest = first()
if not oldest then return 0 end
local length = redis.call('XLEN', key)
if length <= most and not before(oldest, horizon) then return 0 end

local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local groups, protected = {}, nil
for _, row in ipairs(redis.call('XINFO', 'GROUPS', key)) do
  local group = record(row)
  local seen = false
  for _, consumer in ipairs(redis.call('XINFO', 'CONSUMERS', key, group.name)) do
    local who = record(consumer)
    if now - tonumber(who.idle) >= since then seen = true end
    if tonumber(who.pending) == 0 and tonumber(who.idle) > 3600000 then redis.call('XGROUP', 'DELCONSUMER', key, group.name, who.name) end
  end
  local pending = tonumber(group.pending) > 0 and redis.call('XPENDING', key, group.name)[2] or nil
  local after = group['last-delivered-id']
  local unread = redis.call('XRANGE', key, '(' .. after, '+', 'COUNT', 1)
  -- The first entry this group still needs, and the last it does not.
  groups[#groups + 1] = { name = group.name, needs = pending or (unread[1] and unread[1][1]), after = pending and below(pending) or after }
  if pending and seen and (not protected or before(pending, protected)) then protected = pending end
end

-- Approximately: the store cuts whole nodes, and never too many.
local cut = 0
if before(oldest, horizon) then
  cut = redis.call('XTRIM', key, 'MINID', '~', protected and before(protected, horizon) and protected or horizon)
end
local surplus = length - cut - most
if surplus > 0 then
  -- There is no cut by both: as many as are too many, and none from the pending entry on.
  if protected then cut = cut + redis.call('XTRIM', key, 'MINID', '~', protected, 'LIMIT', surplus)
  else cut = cut + redis.call('XTRIM', key, 'MAXLEN', '~', most) end
end
if cut == 0 then return 0 end

local left = first()
local through = left and below(left) or record(redis.call('XINFO', 'STREAM', key))['last-generated-id']
for _, group in ipairs(groups) do
  if group.needs and (not left or before(group.needs, left)) then
    local field = family .. string.char(10) .. group.name
    local told = redis.call('HGET', gaps, field)
    local after = told and cjson.decode(told).after or group.after
    redis.call('HSET', gaps, field, cjson.encode({ after = after, through = through }))
    redis.call('EXPIRE', gaps, 2592000)
  end
end
return cut`;
