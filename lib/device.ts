import { defined } from './defined.ts'
/** The place of a session, for its user to recognize: an address, and names from the lists below. No text of a browser is stored. */
export interface Device {
  /** Absent: not recognized. */
  browser?: string
  system?: string
  /** The network address. */
  address?: string
}

/** A place as people read it. Empty for one of which nothing is known. */
export const nameDevice = ({ browser, system, address }: Device): string => [browser, system, address].filter((part) => part !== undefined).join(', ')

/** Characters of a User-Agent field that are read. */
const READ = 512

/** The first match wins, because many browsers also send the names of similar ones. */
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
export function describeDevice (agent: string, address: string | undefined): Device {
  const start = agent.slice(0, READ)
  const browser = BROWSERS.find(([, pattern]) => pattern.test(start))?.[0]
  const system = SYSTEMS.find(([, pattern]) => pattern.test(start))?.[0]
  return defined({
    browser,
    system,
    address: address !== undefined && address !== '' ? address.slice(0, 64) : undefined
  })
}
