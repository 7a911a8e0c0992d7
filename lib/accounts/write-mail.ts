import { defined } from '../defined.ts'
import type { Draft } from '../mail/delivery.ts'
import type { MailLook } from '../mail/look.ts'
import { type MailKind, composeMail } from '../mail/compose.ts'
import type { Languages } from '../pages/texts/language.ts'
import { type Device, nameDevice } from '../device.ts'

export interface WriterParts {
  service: () => string
  getMailLook: () => MailLook
  getLanguages: () => Languages
}

interface Written {
  to: string
  /** A language as it is stored, or was asked for. */
  language: unknown
  link?: string | undefined
  values?: Record<string, string> | undefined
  /** ISO 8601. */
  time?: string | undefined
  place?: Device | undefined
}

function showTime (timestamp: string, language: string): string {
  const format = new Intl.DateTimeFormat(language, { dateStyle: 'long', timeStyle: 'short', hourCycle: 'h23', timeZone: 'UTC' })
  return `${format.format(new Date(timestamp))} UTC`
}

/** Creates the function that writes the text of a mail, in a language of this process. */
export function createWriter ({ service, getMailLook, getLanguages }: WriterParts) {
  return (kind: MailKind, { to, language: stored, link, values, time, place }: Written): NonNullable<Draft> => {
    const languages = getLanguages()
    const language = languages.check(stored)
    const about = defined({
      ...values,
      time: time === undefined ? undefined : showTime(time, language),
      place: place === undefined ? undefined : nameDevice(place) || '?'
    })
    return composeMail(kind, { to, link, language, languages, look: getMailLook(), values: { ...about, service: service() } })
  }
}

export type WriteMail = ReturnType<typeof createWriter>
