import { createHmac, type KeyObject, timingSafeEqual } from 'node:crypto'
import type { Clock } from '../clock.ts'
import { randomText } from '../ids.ts'

/** Seconds for which a browser stays known after a sign-in: a year. */
export const KNOWN_FOR = 365 * 24 * 60 * 60

/** Accounts per browser. A further one replaces the account with the oldest sign-in. */
const MOST = 4

/** A browser in which a user has signed in with a password, as its cookie records it. */
export interface KnownBrowser {
  /** A random id, new after each sign-in. */
  browser: string
  user_id: string
  /** The user's epoch at the sign-in. A new password increments it, and the browser is then no longer known. */
  epoch: number
}

interface Entry extends KnownBrowser {
  /** A keyed hash of the typed account, lower-cased. */
  account: string
  /** Seconds since the epoch. */
  since: number
}

/** Writes and reads the cookie that identifies a known browser. */
export interface KnownBrowsers {
  /** The cookie's entry for this account. Undefined for a missing, altered or expired one. */
  find (cookie: string | undefined, account: string): KnownBrowser | undefined
  /** The new value of the cookie after a sign-in. */
  add (cookie: string | undefined, account: string, user: { user_id: string, epoch: number }): string
}

/** @param key signs the cookies */
export function createKnownBrowsers ({ key, now }: { key: KeyObject, now: Clock }): KnownBrowsers {
  const sign = (text: string) => createHmac('sha256', key).update(text).digest()
  const hashAccount = (account: string) => sign(`account ${account.toLowerCase()}`).toString('base64url')

  function read (cookie = ''): Entry[] {
    const [text = '', signature = '', ...rest] = cookie.split('.')
    const given = Buffer.from(signature, 'base64url')
    const own = sign(`cookie ${text}`)
    if (rest.length > 0 || given.length !== own.length || !timingSafeEqual(given, own)) return []
    const entries = JSON.parse(Buffer.from(text, 'base64url').toString()) as Entry[]
    return entries.filter(({ since }) => (since + KNOWN_FOR) * 1000 > now())
  }

  return {
    find (cookie, account) {
      const hashed = hashAccount(account)
      return read(cookie).find((entry) => entry.account === hashed)
    },

    add (cookie, account, { user_id, epoch }) {
      const hashed = hashAccount(account)
      const entry: Entry = { browser: randomText(22), user_id, epoch, account: hashed, since: Math.floor(now() / 1000) }
      const entries = [entry, ...read(cookie).filter(({ account }) => account !== hashed)].slice(0, MOST)
      const text = Buffer.from(JSON.stringify(entries)).toString('base64url')
      return `${text}.${sign(`cookie ${text}`).toString('base64url')}`
    }
  }
}
