import type { AcceptPurpose } from '../accounts/accept.ts'

/** The page of a link that an identity completes: within the sign-in to an app, or not. */
export type ReturnToLink = { link: AcceptPurpose, interaction?: string }

/**
 * Where an answer leads: on with an authorization of an app, to the page of the account that the person wanted, to the session in which
 * they link an identity, or to the link that they complete.
 */
export type ReturnTo = ReturnToSignIn | { session: string } | ReturnToLink

/** A sign-in: that of an authorization, or that of the account pages. */
export type ReturnToSignIn = { uid: string } | { next?: string }

/**
 * What an authorization was begun for. The answer is judged by this alone, and never by who is signed in when it comes. A sign-in begins
 * with a link; with `fresh`, and to link an identity, it begins with a form, because any site may open a link. `fresh`: the person is
 * signed in, and proves again that it is them. `asks`: the provider was told to ask for a sign-in. `accept`: the link of this ticket is
 * what links. `renew`: their session goes on if the provider still knows them, which no page asks.
 */
export type Intent =
  | { kind: 'sign_in', place: ReturnTo, fresh?: boolean, asks?: boolean }
  | { kind: 'link', place: { session: string }, user_id: string, epoch: number }
  | { kind: 'accept', place: ReturnToLink, ticket: string }
  | { kind: 'renew', place: ReturnToSignIn, user_id: string, way: string }

/** Whether the provider was told to ask for a sign-in. */
export function asksToSignIn (intent: Intent): boolean {
  return intent.kind === 'sign_in' ? intent.fresh === true || intent.asks === true : intent.kind !== 'renew'
}
