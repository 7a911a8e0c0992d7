/** A user code in our format (configuration.ts): as it is shown, stored or typed. */
const USER_CODE = /^([bcdfghjklmnpqrstvwxz]{4})-?([bcdfghjklmnpqrstvwxz]{4})$/i

/** The code as devices show it. Undefined for any other text: a link may have any. */
export function formatUserCode (text: string): string | undefined {
  const [, first, last] = USER_CODE.exec(text) ?? []
  return first === undefined ? undefined : `${first}-${last}`.toUpperCase()
}
