import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { de as germanMails } from '../lib/mail/texts/de.ts'
import { en as englishMails } from '../lib/mail/texts/en.ts'
import { de } from '../lib/pages/texts/de.ts'
import { en } from '../lib/pages/texts/en.ts'
import { BUILT_IN } from '../lib/pages/texts/language.ts'
import { choice, value } from './args.ts'
import type { Commands } from './command.ts'
import { toFileError } from './file-error.ts'

const TEXTS: Record<string, { pages: object, mails: object }> = {
  en: { pages: en, mails: englishMails },
  de: { pages: de, mails: germanMails }
}

export const textCommands: Commands = {
  'texts export': {
    summary: 'Export the texts of pages and emails as JSON. For the folder in IDENTITY_TEXTS.',
    example: 'texts export --language en --file texts/fr.json',
    flags: {
      language: choice('TAG', BUILT_IN, `${BUILT_IN.join(' or ')}; ${BUILT_IN[0]} by default. Translate one of these into another language.`),
      file: value('FILE', 'A new file, with its folder; stdout by default.')
    },
    async runAlone ({ args, stdout }) {
      const language = args.optional('language') ?? 'en'
      const texts = TEXTS[language]
      const text = `${JSON.stringify(texts, null, 2)}\n`
      const file = args.optional('file')
      if (file === undefined) {
        stdout.write(text)
        return
      }
      try {
        mkdirSync(dirname(file), { recursive: true })
        // Never replaces texts that somebody has changed.
        writeFileSync(file, text, { flag: 'wx' })
      } catch (error) {
        throw toFileError(error, file, 'written')
      }
    }
  }
}
