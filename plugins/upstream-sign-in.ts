import type { ReturnTo } from '../lib/upstreams/index.ts'
import type { SignInForm } from './sign-in-forms.ts'

/** A sign-in that may go on with what another provider says. */
export interface UpstreamSignIn {
  form: SignInForm
  place: ReturnTo
  /** The page of the sign-in. */
  back: string
  /** The user who is signed in in this browser. */
  current?: string | undefined
  /** The same, where they are asked to prove again that it is them. */
  again?: string | undefined
  /** Answers when the session of this browser was renewed. Absent where none can be. */
  onRenewed?: () => Promise<unknown>
  /** Seconds since when a sign-in at the provider is enough for the app. Absent: it does not ask. */
  maxAge?: number | undefined
}

/** The page of a sign-in, for a person who comes back to it: an app that asks for a provider does not send them there again. */
export const toChoice = (page: string): string => `${page}${page.includes('?') ? '&' : '?'}way=password`

/** The page where the person may begin again. */
export const toBack = ({ back, place }: UpstreamSignIn): string => 'uid' in place ? toChoice(back) : back
