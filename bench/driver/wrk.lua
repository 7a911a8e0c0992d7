-- Sends the requests of a file in rotation. In the file a line with its length in bytes precedes each request. All are read
-- before the run, so that a request costs wrk one table look-up.
-- Arguments: the file, and the number of requests to skip.

local requests = {}
local index = 0

function init (args)
  local file = assert(io.open(args[1], 'rb'))
  for length in file:lines() do
    requests[#requests + 1] = file:read(tonumber(length))
  end
  file:close()
  index = tonumber(args[2]) % #requests
end

function request ()
  index = index % #requests + 1
  return requests[index]
end

function done (summary, latency)
  local errors = summary.errors
  print(string.format(
    '{"requests":%d,"duration":%d,"p50":%d,"p99":%d,"max":%d,"status":%d,"connect":%d,"read":%d,"write":%d,"timeout":%d}',
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(99), latency.max,
    errors.status, errors.connect, errors.read, errors.write, errors.timeout
  ))
end
