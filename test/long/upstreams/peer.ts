import type { Test } from 'tap'
import type { Tab } from '../../pages/chromium.ts'

/** The client under which the service is registered at each provider. */
export const CLIENT = { clientId: 'us', clientSecret: 'a secret of a long test' } as const

/** An account at a provider. */
export interface Person {
  account: string
  password: string
  name: string
  email: string
  /** Whether the provider calls the address verified. */
  isVerified: boolean
}

const person = (account: string, isVerified: boolean, email = `${account}@example.com`): Person => (
  { account, password: `the password of ${account}`, name: account[0]!.toUpperCase() + account.slice(1), email, isVerified })

/** An address that somebody else has typed at the provider. */
export const VICTIM = 'victim@example.com'

/** The accounts at each provider. */
export const PEOPLE = { ada: person('ada', true), ben: person('ben', false, VICTIM), cara: person('cara', true), dora: person('dora', true) }

/** People whose groups, or roles there, are roles here. */
export const GROUPED = { groups: person('gus', true, 'gus@groups.example'), 'realm-roles': person('rita', true, 'rita@realm-roles.example') }

/** The group that a provider has, and the role there of its members. */
export const GROUP = 'staff'

/** A provider that runs. */
export interface Peer {
  issuer: string
  /** The client, where the provider makes up its id and secret. */
  client?: { clientId: string, clientSecret: string }
  /** Signs in on the provider's own pages, and allows what they ask for. */
  signIn (tab: Tab, person: Person): Promise<void>
  /** Makes the account on the provider's own pages, and signs in. Absent: all accounts are there. */
  register? (tab: Tab, person: Person): Promise<void>
  stop (): Promise<void>
  /** What an administrator does to a person there. Absent: nothing of it is tried. */
  administer? (person: Person, what: 'create' | 'sign out' | 'disable' | 'delete' | 'add to the group' | 'remove from the group'): Promise<void>
}

/** A provider of others, unmodified. */
export interface PeerKind {
  name: string
  /** Why it cannot run here, or false. */
  skip: string | false
  /** Whether its pages need scripts. Ours are never given any. */
  scripts?: boolean
  /** Starts it on 127.0.0.1: the service is at localhost, so that neither has the cookies of the other. */
  start (t: Test, options: { redirectUri: string, logoutUri?: string }): Promise<Peer>
}
