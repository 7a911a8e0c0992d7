import type { Client, ClientSecret, ServiceToken } from '../../../schemas/client.ts'
import type { Event } from '../../../schemas/event.ts'
import type { RefusedForm } from './conflicts.ts'
import type { ConsoleContext, ConsoleView } from './frame.ts'

/** What the reader may do with this client, each by its name in the forms of the page. */
export type ClientAct =
  'edit' | 'reveal' | 'renew' | 'disable' | 'take' | 'remove' | 'add-secret' | 'remove-secret' | 'add-token' | 'remove-token' | 'block' | 'refresh'

/** A secret or a token that the answer of one form shows. */
export interface ShownSecret { kind: 'readable' | 'secret' | 'token', value: string }

export interface ClientPageView {
  /** Without its readable secret, which only the answer of a form has. */
  client: Omit<Client, 'clientSecret'>
  /** How it authenticates, and what it may do to get tokens, as it is by default too. */
  tokenAuth: NonNullable<Client['tokenAuth']>
  grants: NonNullable<Client['grants']>
  /** The account of the owner. Absent: unknown to the reader, or deleted. */
  owner?: string | undefined
  /** Whether the reader may open the owner's page. */
  mayOpenOwner: boolean
  mayPreview: boolean
  /** Whether it has a readable secret that the reader may see. */
  isReadable: boolean
  /** The tags of what the forms show: of its fields, and of its secrets. */
  tag: string
  secretsTag: string
  secrets?: readonly ClientSecret[] | undefined
  tokens?: readonly ServiceToken[] | undefined
  events?: readonly Event[] | undefined
  acts: readonly ClientAct[]
  refused?: RefusedForm | undefined
  shown?: ShownSecret | undefined
}

/** A page, and what it is rendered with. */
export interface ClientParts { view: ConsoleView, page: ClientPageView, context: ConsoleContext, to: string }
