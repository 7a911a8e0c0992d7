/** The version numbers of a layout, which is the form of the documents and tables of a release. */
export interface Layout {
  /** A release that changes the stored form increments it, and adds a step (migrator.ts) that changes existing documents. */
  version: number
  /** The earliest layout whose releases can read and write what this one writes. A release is refused by this number only. */
  oldestReader: number
}

/**
 * The layout of this release, on both engines. In layout 1 SQLite files had other tables, and MongoDB no numbers. Releases of the
 * layouts before 4 do not know the ways of a user, and would let people in by the password alone. Those before 5 take a client without a
 * readable secret for a public one, and would give its tokens to anybody. Those before 6 take an address that a provider has only seen for
 * one that is proved. They do not remember which identities an account has lost either, and would give it to the next owner of its address.
 * And they would publish events without the mails that are stored beside them. Those of layout 6 write users and clients without the words of
 * a search, which they need not know: a start corrects these (migrator.ts).
 */
export const LAYOUT: Layout = { version: 7, oldestReader: 6 }

/** The part of a store in a move (lib/maintenance/move.ts). */
export interface Move {
  /** The same in both stores. */
  id: string
  role: 'source' | 'target'
  /** The name of the other store: its URL, without credentials. */
  other: string
  since: string
  /** On a source: no process writes to it any more, and every write that was acknowledged can be read. */
  isQuiet?: true
  /** On a source: everything was copied to the target, and compared. */
  isDone?: true
  /** On a target: the collections before this one were copied, and this one up to the document with the id. */
  at?: { collection: string, id?: string }
}

/** The state of a store. It is stored apart from the collections, and moves and backups of these leave it alone. */
export interface StoreState extends Layout {
  move?: Move | undefined
  /** The role whose holders are marked (lib/user-changes/administrators.ts). */
  admin_role?: string | undefined
  /** True when the addresses of an earlier layout were judged (lib/upstreams/earlier-addresses.ts), which takes the configuration. */
  addresses_judged?: boolean | undefined
  /** Until when the words of what earlier releases have written were corrected: see recheckWords (migrator.ts). ISO 8601. */
  words_checked?: string | undefined
  /** The process that migrates the documents to a later layout, and the end of its lease. */
  migrator?: { id: string, until: string } | undefined
}

/** A state as it was read. */
export interface FoundState {
  state: StoreState
  /** Changes with each write. */
  revision: number
}

/** The access to a store's state. */
export interface StateRecord {
  /**
   * Milliseconds after a write of the state until every process obeys it. A process that has relied on the previous state may still
   * write after that, but never acknowledges such a write.
   */
  readonly delay: number
  read (): Promise<FoundState>
  /** Changes the state if it is still as it was found. Resolves to the new one, or null. A field set to undefined is removed. */
  change (found: FoundState, change: Partial<StoreState>): Promise<FoundState | null>
}

/** The process that opens a store. */
export interface Opener {
  layout: Layout
  /** Whether it is the command `move` itself, which may open a store that is being moved. */
  moving: boolean
}

export const OPENER: Opener = { layout: LAYOUT, moving: false }

/** @throws Error that tells the operator why this process cannot use the store, and what to do */
export function checkState ({ oldestReader, move }: StoreState, { layout, moving }: Opener): void {
  if (oldestReader > layout.version) throw new Error('it was written by a later release')
  if (move === undefined || moving) return
  const { role, other, since, isDone } = move
  if (role === 'target') throw new Error(`it is the target of an unfinished move from ${other}: call \`move\` again, with the same two URLs`)
  throw new Error(isDone
    ? `it was moved to ${other} on ${since}: use that database`
    : `it is being moved to ${other} since ${since}: wait for \`move\`, call it again with the same two URLs if it was interrupted, or go on here after \`move withdraw\``)
}

/** The state with a change, as JSON. */
export function changeState (state: StoreState, change: Partial<StoreState>): { state: StoreState, doc: string } {
  const doc = JSON.stringify({ ...state, ...change })
  return { state: JSON.parse(doc) as StoreState, doc }
}
