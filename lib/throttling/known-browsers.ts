import { createHmac, type KeyObject, timingSafeEqual } from 'node:crypto'
import type { Clock } from '../clock.ts'
import { randomText } from '../ids.ts'

/** Seconds for which a browser stays known after a sign-in: a year. */
export const KNOWN_FOR = 365 * 24 * 60 * 60

/** Accounts per browser. A further one replaces the account with the oldest sign-in. */
const MOST = 4

/** A browser in which a user has signed in, by whatever way, as its cookie records it. */
export interface KnownBrowser {
  /** A random id: failed attempts count for it. A further sign-in keeps it, because only a right password ends their count. */
  browser: string
  user_id: string
  /** The user's epoch at the sign-in. A new password increments it, and the browser is then no longer known. */
  epoch: number
}

interface Entry extends KnownBrowser {
  /** Keyed hashes of the names of the account, lower-cased, with a space between. */
  account: string
  /** Seconds since the epoch. */
  since: number
}

const hasName = ({ account }: Entry, hashes: readonly string[]): boolean => account.split(' ').some((hashed) => hashes.includes(hashed))

/** Writes and reads the cookie that identifies a known browser. */
export interface KnownBrowsers {
  /** The cookie's entry for this account. Undefined for a missing, altered or expired one. */
  find (cookie: string | undefined, account: string): KnownBrowser | undefined
  /** The entry of the latest sign-in, whose epoch may have passed. Undefined for a missing, altered or expired one. */
  findLatest (cookie: string | undefined): KnownBrowser | undefined
  /** The new value of the cookie after a sign-in. @param names what the user may type at the next one */
  add (cookie: string | undefined, names: readonly string[], user: { user_id: string, epoch: number }): string
}

/** @param keys the first one signs the cookies, and all verify them: those from before a rotation of the secret key are good during it */
export function createKnownBrowsers ({ keys, now }: { keys: readonly [KeyObject, ...KeyObject[]], now: Clock }): KnownBrowsers {
  const sign = (text: string, key = keys[0]) => createHmac('sha256', key).update(text).digest()
  /** The hashes that an entry for this account may have: one of before stays in the cookie that is signed anew. */
  const hashAccount = (account: string) => keys.map((key) => sign(`account ${account.toLowerCase()}`, key).toString('base64url')) as [string, ...string[]]

  function read (cookie = ''): Entry[] {
    const [text = '', signature = '', ...rest] = cookie.split('.')
    const given = Buffer.from(signature, 'base64url')
    const isOurs = keys.some((key) => {
      const own = sign(`cookie ${text}`, key)
      return given.length === own.length && timingSafeEqual(given, own)
    })
    if (rest.length > 0 || !isOurs) return []
    const entries = JSON.parse(Buffer.from(text, 'base64url').toString()) as Entry[]
    return entries.filter(({ since }) => (since + KNOWN_FOR) * 1000 > now())
  }

  return {
    find (cookie, account) {
      const hashed = hashAccount(account)
      return read(cookie).find((entry) => hasName(entry, hashed))
    },

    findLatest: (cookie) => read(cookie)[0],

    add (cookie, names, { user_id, epoch }) {
      const hashes = names.map(hashAccount)
      const known = read(cookie)
      const { browser = randomText(22) } = known.find((entry) => entry.user_id === user_id && entry.epoch === epoch) ?? {}
      const entry: Entry = { browser, user_id, epoch, account: hashes.map(([hashed]) => hashed).join(' '), since: Math.floor(now() / 1000) }
      // A name may have been another user's.
      const others = known.filter((one) => one.user_id !== user_id && !hasName(one, hashes.flat()))
      const entries = [entry, ...others].slice(0, MOST)
      const text = Buffer.from(JSON.stringify(entries)).toString('base64url')
      return `${text}.${sign(`cookie ${text}`).toString('base64url')}`
    }
  }
}
