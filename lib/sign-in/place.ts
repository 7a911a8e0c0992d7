/** Where a session was used from, as its user recognizes it: short words of ours and an address, whatever a browser sends. */
export interface Place {
  /** Absent: none that we know. */
  browser?: string
  system?: string
  /** The network address. */
  address?: string
}

/** Characters of a User-Agent field that are read. */
const READ = 512

/** The first that fits counts: many browsers also name those that they resemble. */
const BROWSERS: [name: string, pattern: RegExp][] = [
  ['Edge', /\bEdg(e|A|iOS)?\//],
  ['Opera', /\bOPR\//],
  ['Samsung Internet', /\bSamsungBrowser\//],
  ['Firefox', /\b(Firefox|FxiOS)\//],
  ['Chrome', /\b(Chrome|CriOS|HeadlessChrome|Chromium)\//],
  ['Safari', /\bVersion\/[\d.]+.* Safari\//],
  ['curl', /^curl\//]
]

const SYSTEMS: [name: string, pattern: RegExp][] = [
  ['iPhone', /\biPhone\b/],
  ['iPad', /\biPad\b/],
  ['Android', /\bAndroid\b/],
  ['ChromeOS', /\bCrOS\b/],
  ['Windows', /\bWindows\b/],
  ['macOS', /\bMac OS X\b/],
  ['Linux', /\bLinux\b/]
]

/** The place of a request, by its User-Agent field (RFC 9110, 10.1.5) and its address. */
export function describePlace (agent: string, address: string | undefined): Place {
  const start = agent.slice(0, READ)
  const browser = BROWSERS.find(([, pattern]) => pattern.test(start))?.[0]
  const system = SYSTEMS.find(([, pattern]) => pattern.test(start))?.[0]
  return {
    ...(browser !== undefined && { browser }),
    ...(system !== undefined && { system }),
    ...(address !== undefined && address !== '' && { address: address.slice(0, 64) })
  }
}
